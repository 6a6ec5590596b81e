// Faults of a specification: all of them at once, each with the place to look at.
//
// A person who mends a file wants the whole list, not the first entry of it; a fault that only follows from
// another (a field that could not be read is then "missing") is noise. So faults are collected by field path,
// and a check first asks whether a field it needs is already known to be at fault.
#pragma once

#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace llmctl::spec {

// 1-based, columns in characters; {0, 0} where there is no file.
struct Position {
  int line = 0;
  int column = 0;
  auto operator<=>(const Position&) const = default;
};

// Where a file gives each field, by path ("model.layers"); the root is "".
using Positions = std::map<std::string, Position>;

class FaultList {
 public:
  // A fault of the field `path` (empty: of the whole), at the place where `given` has the field or the
  // nearest section around it.
  void Add(const Positions& given, const std::string& path, const std::string& text);
  void AddAt(Position position, const std::string& path, const std::string& text);

  // Counts the field as at fault without a line of its own: it was probably given under a wrong name.
  void Excuse(const std::string& path) { paths_.insert(path); }

  // Whether one of the fields, or a section around it, is at fault already.
  bool Concerns(std::initializer_list<absl::string_view> paths) const;

  bool empty() const { return faults_.empty(); }

  // OK without faults; else InvalidArgument, a line per fault in the order of the file:
  // "<file>:<line>:<column>: <path>: <text>", or "<path>: <text>" where `file` is empty.
  absl::Status ToStatus(absl::string_view file) const;

 private:
  struct Fault {
    Position position;
    std::string path;
    std::string text;
  };

  std::vector<Fault> faults_;
  std::set<std::string, std::less<>> paths_;
};

// "model" and "layers" -> "model.layers".
std::string ChildPath(absl::string_view parent, absl::string_view name);

// "sources" and 1 -> "sources[1]".
std::string ItemPath(absl::string_view list, size_t index);

// "model.layers" -> "model" -> ""; "sources[1].name" -> "sources[1]" -> "sources" -> "".
absl::string_view ParentPath(absl::string_view path);

}  // namespace llmctl::spec
