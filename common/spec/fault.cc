#include "common/spec/fault.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace llmctl::spec {

void FaultList::Add(const Positions& given, const std::string& path, const std::string& text) {
  std::string at = path;
  while (true) {
    auto found = given.find(at);
    if (found != given.end()) return AddAt(found->second, path, text);
    if (at.empty()) return AddAt(Position{}, path, text);
    at = std::string(ParentPath(at));
  }
}

void FaultList::AddAt(Position position, const std::string& path, const std::string& text) {
  faults_.push_back({position, path, text});
  paths_.insert(path);
}

bool FaultList::Concerns(std::initializer_list<absl::string_view> paths) const {
  for (absl::string_view path : paths) {
    while (true) {
      if (paths_.count(std::string(path)) > 0) return true;
      if (path.empty()) break;
      path = ParentPath(path);
    }
  }
  return false;
}

absl::Status FaultList::ToStatus(absl::string_view file) const {
  if (faults_.empty()) return absl::OkStatus();
  std::vector<Fault> sorted = faults_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Fault& a, const Fault& b) { return a.position < b.position; });
  std::vector<std::string> lines;
  for (const Fault& fault : sorted) {
    std::string line;
    if (!file.empty()) absl::StrAppend(&line, file, ":", fault.position.line, ":", fault.position.column, ": ");
    if (!fault.path.empty()) absl::StrAppend(&line, fault.path, ": ");
    lines.push_back(absl::StrCat(line, fault.text));
  }
  return absl::InvalidArgumentError(absl::StrJoin(lines, "\n"));
}

std::string ChildPath(absl::string_view parent, absl::string_view name) {
  return parent.empty() ? std::string(name) : absl::StrCat(parent, ".", name);
}

std::string ItemPath(absl::string_view list, size_t index) { return absl::StrCat(list, "[", index, "]"); }

absl::string_view ParentPath(absl::string_view path) {
  size_t end = path.find_last_of(".[");
  return end == absl::string_view::npos ? absl::string_view() : path.substr(0, end);
}

}  // namespace llmctl::spec
