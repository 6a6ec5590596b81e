// Columns for people. Scripts take -o json.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace llmctl::client {

class Table {
 public:
  // A reason may quote a whole stack; -o json has all of it.
  static constexpr size_t kCellMax = 160;

  explicit Table(std::vector<std::string> columns) : rows_{std::move(columns)} {}

  // As many cells as columns; an empty one is shown as "-", one of more than kCellMax characters is cut.
  void AddRow(std::vector<std::string> cells);

  // Columns as wide as their widest cell, two spaces apart, no spaces at the ends of lines.
  std::string ToText() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the first is the heading
};

}  // namespace llmctl::client
