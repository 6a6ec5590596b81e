// A file in memory, read by the system as it is touched.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::data {

class MappedFile {
 public:
  // kRandom: what is touched says nothing about what will be.
  enum class Access { kRandom, kSequential };
  static absl::StatusOr<std::unique_ptr<MappedFile>> Open(const std::string& path, Access access);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  absl::string_view content() const { return {data_, bytes_}; }
  // Has the system start reading these bytes. What fails here is read when it is touched.
  void WillNeed(size_t begin, size_t bytes) const;

 private:
  MappedFile(const char* data, size_t bytes) : data_(data), bytes_(bytes) {}

  const char* data_;
  size_t bytes_;
};

}  // namespace llmctl::data
