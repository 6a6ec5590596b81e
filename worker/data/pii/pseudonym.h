// Made-up data in the place of real: of the same form, the same for the same under one key, and not to be turned back
// without it.
//
// Every choice comes from HMAC-SHA-256 of the key over the type and what was found in its plain form (an address in
// small letters, a number's digits). What can be given in a range that nobody has is: addresses of example.org, 240/4,
// 2001:db8::/32, social security numbers from 900 on. Otherwise only the issuer's or the network's part is kept.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

#include "worker/data/pii/pii_settings.h"

namespace llmctl::data {

std::string Pseudonym(const PiiKey& key, PiiType type, absl::string_view found);

}  // namespace llmctl::data
