#include "client/command/builds.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace llmctl::client {
namespace {

// Of a thousand hosts nobody reads more.
constexpr size_t kNamesMax = 5;

std::string Names(const std::vector<std::string>& names) {
  size_t shown = std::min(names.size(), kNamesMax);
  std::string text = absl::StrJoin(names.begin(), names.begin() + static_cast<ptrdiff_t>(shown), ", ");
  return names.size() > shown ? absl::StrCat(text, " and ", names.size() - shown, " more") : text;
}

}  // namespace

std::string DescribeSkew(const BuildUsers& users) {
  if (users.size() < 2) return "";
  std::vector<std::string> parts;
  for (const auto& [build, names] : users) {
    parts.push_back(absl::StrCat(build.empty() ? "an unknown build" : build, " on ", Names(names)));
  }
  return absl::StrCat(users.size(), " builds: ", absl::StrJoin(parts, "; "));
}

}  // namespace llmctl::client
