#include "client/output/table.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace llmctl::client {
namespace {

// Characters, not bytes: labels and reasons may hold any UTF-8.
size_t Width(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; });
}

void Cut(std::string& cell) {
  if (Width(cell) <= Table::kCellMax) return;
  size_t characters = 0, bytes = 0;
  while (bytes < cell.size()) {
    bool begins = (static_cast<unsigned char>(cell[bytes]) & 0xC0) != 0x80;
    if (begins && ++characters > Table::kCellMax - 3) break;
    ++bytes;
  }
  cell = cell.substr(0, bytes) + "...";
}

}  // namespace

void Table::AddRow(std::vector<std::string> cells) {
  CHECK_EQ(cells.size(), rows_[0].size()) << "a row has a cell for each column";
  for (std::string& cell : cells) {
    if (cell.empty()) cell = "-";
    // A line is a row, whatever a reason may hold.
    std::replace(cell.begin(), cell.end(), '\n', ' ');
    Cut(cell);
  }
  rows_.push_back(std::move(cells));
}

std::string Table::ToText() const {
  std::vector<size_t> widths(rows_[0].size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string out;
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      out += row[i];
      if (i + 1 < row.size()) out.append(widths[i] - Width(row[i]) + 2, ' ');
    }
    out += '\n';
  }
  return out;
}

}  // namespace llmctl::client
