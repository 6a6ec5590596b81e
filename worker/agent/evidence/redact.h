// An environment without its secrets. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace llmctl::agent {

// Whether a variable of this name may hold a secret: it contains, in any case, one of token, secret, passw, key,
// credential, auth, cookie, private. Rather too many than one too few.
bool NamesASecret(absl::string_view name);

// User and password of each URL in `value`, scheme://user:password@host, are left out.
std::string WithoutUserInfo(absl::string_view value);

// Sorted lines "NAME=value", where the value of a secret is "(left out)", and so are those of URLs.
std::string RedactedEnvironment(std::vector<std::string> environment);

}  // namespace llmctl::agent
