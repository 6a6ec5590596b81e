// CurveFile: lines that are appended to a file, and wait in memory while it cannot be written.
//
// A full disk passes, and a curve with a hole can never be mended: so what could not be written is tried again with the
// next line, in order and without a torn one. The lines that wait are bounded; beyond that the oldest are given up,
// which is said. What is written survives the death of the process, but is not fsynced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"

#include "common/base/unique_fd.h"

namespace llmctl::trainer {

class CurveFile {
 public:
  // Created, with its folder, by the first Append.
  explicit CurveFile(std::string path, size_t waiting_bytes_max = 4 << 20);
  CurveFile(const CurveFile&) = delete;
  CurveFile& operator=(const CurveFile&) = delete;
  // One more try.
  ~CurveFile();

  // `line` ends with a line feed. An error says why lines wait, this one being the newest of them.
  absl::Status Append(const std::string& line);

  const std::string& path() const { return path_; }
  size_t waiting_bytes() const { return waiting_.size(); }
  int64_t lost_lines() const { return lost_lines_; }

 private:
  absl::Status Write();
  void DropOldest();

  const std::string path_;
  const size_t waiting_bytes_max_;
  UniqueFd file_;
  std::string waiting_;  // may begin in the midst of a line whose beginning is in the file
  bool torn_ = false;    // it does
  int64_t lost_lines_ = 0;
};

}  // namespace llmctl::trainer
