// The top-level domains of the Internet, small letters, sorted by bytes.
#pragma once

#include <cstddef>
#include <iterator>

#include "absl/strings/string_view.h"

namespace llmctl::data {

extern const absl::string_view kTopLevelDomains[];
extern const size_t kTopLevelDomainCount;

}  // namespace llmctl::data
