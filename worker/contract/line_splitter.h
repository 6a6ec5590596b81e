// Cuts a byte stream into lines, with a bound on what a peer can make us hold.
//
//   LineSplitter lines(kLineBytesMax);
//   lines.Append(bytes_just_read);
//   while (std::optional<std::string> line = lines.Next()) Handle(*line);
//   if (lines.overflowed()) CloseTheLink();
//
// Used by all three ends of the contract: agent, shim and trainer.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace llmctl::contract {

class LineSplitter {
 public:
  explicit LineSplitter(size_t line_bytes_max) : line_bytes_max_(line_bytes_max) {}

  void Append(absl::string_view bytes);
  // The next whole line without its newline.
  std::optional<std::string> Next();
  // A line is longer than the maximum: nothing sensible can follow on this stream.
  bool overflowed() const { return overflowed_; }

 private:
  const size_t line_bytes_max_;
  std::string buffer_;
  size_t begin_ = 0;    // of the first line not yet given out
  size_t scanned_ = 0;  // no newline in [begin_, scanned_)
  bool overflowed_ = false;
};

}  // namespace llmctl::contract
