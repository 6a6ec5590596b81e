// Spill files in memory: tests that are not about disks wait for none.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "worker/data/spill/spill_files.h"

namespace llmctl::data {

class MemoryFiles : public SpillFiles {
 public:
  absl::StatusOr<std::unique_ptr<SpillWriter>> Create(const std::string& path) override {
    return std::make_unique<Writer>(*this, path);
  }

  absl::StatusOr<std::unique_ptr<SpillReader>> Open(const std::string& path) override {
    std::lock_guard lock(mutex_);
    auto file = files_.find(path);
    if (file == files_.end()) return absl::NotFoundError(absl::StrCat("open ", path, ": no such file"));
    return std::make_unique<Reader>(file->second);
  }

  absl::Status RemoveFolder(const std::string& path) override {
    std::lock_guard lock(mutex_);
    const std::string inside = path + "/";
    auto first = files_.lower_bound(inside), last = first;
    while (last != files_.end() && last->first.rfind(inside, 0) == 0) ++last;
    files_.erase(first, last);
    return absl::OkStatus();
  }

 private:
  using Bytes = std::shared_ptr<const std::string>;

  class Writer : public SpillWriter {
   public:
    Writer(MemoryFiles& files, std::string path) : files_(files), path_(std::move(path)) {}

    absl::Status Append(absl::string_view bytes) override {
      bytes_.append(bytes.data(), bytes.size());
      return absl::OkStatus();
    }
    absl::Status Commit() override {
      std::lock_guard lock(files_.mutex_);
      files_.files_[path_] = std::make_shared<const std::string>(std::move(bytes_));
      return absl::OkStatus();
    }

   private:
    MemoryFiles& files_;
    const std::string path_;
    std::string bytes_;
  };

  class Reader : public SpillReader {
   public:
    explicit Reader(Bytes bytes) : bytes_(std::move(bytes)) {}

    uint64_t size() const override { return bytes_->size(); }
    absl::Status ReadAt(uint64_t offset, char* out, size_t bytes) const override {
      if (offset > size() || bytes > size() - offset) return absl::DataLossError("a read beyond the end");
      std::memcpy(out, bytes_->data() + offset, bytes);
      return absl::OkStatus();
    }

   private:
    const Bytes bytes_;
  };

  std::mutex mutex_;
  std::map<std::string, Bytes> files_;
};

}  // namespace llmctl::data
