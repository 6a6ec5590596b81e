// One stream of a trainer on disk: bounded, and addressed by byte offset from its beginning for ever.
//
// <name>.log grows to half the bound, is then renamed to <name>.<offset of its first byte>.log, and the one so
// renamed before is removed after that. A reader finds an offset by the names alone: the present part begins where
// the newest renamed one ends.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "common/base/unique_fd.h"

namespace llmctl::shim {

class LogFile {
 public:
  // In the working directory. Two parts of at least one byte each.
  LogFile(std::string name, int64_t bytes_max);

  // What cannot be written is lost but counted: a full disk must not stop the trainer. The stream says so where it goes
  // on.
  void Append(absl::string_view bytes);
  int64_t lost_bytes() const { return lost_bytes_; }

 private:
  // How many bytes could not be written.
  size_t Write(absl::string_view bytes);
  void Rotate();

  const std::string name_;
  const int64_t part_bytes_max_;
  UniqueFd file_;
  int64_t part_begin_ = 0;  // offset of the open part's first byte
  int64_t part_bytes_ = 0;
  std::string previous_;  // name of the renamed part; empty: none
  int64_t lost_bytes_ = 0;
  int64_t lost_unsaid_ = 0;  // since the stream broke off
};

}  // namespace llmctl::shim
