#include "worker/data/read/field_path.h"

#include <algorithm>

namespace llmctl::data {

std::vector<std::string> SplitFieldPath(absl::string_view path) {
  std::vector<std::string> names(1);
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '.') {
      names.emplace_back();
      continue;
    }
    if (path[i] == '\\' && i + 1 < path.size()) ++i;
    names.back() += path[i];
  }
  return names;
}

std::string FieldPathFault(absl::string_view path) {
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '\\') continue;
    if (i + 1 == path.size() || (path[i + 1] != '.' && path[i + 1] != '\\')) {
      return "a backslash stands before a dot or a backslash only";
    }
    ++i;
  }
  std::vector<std::string> names = SplitFieldPath(path);
  bool empty = std::any_of(names.begin(), names.end(), [](const std::string& name) { return name.empty(); });
  return empty ? "a name in it is empty" : "";
}

}  // namespace llmctl::data
