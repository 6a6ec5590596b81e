// Records of a sorted file by document: a block is held, so that ascending documents read the file once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/base/status.h"
#include "worker/data/spill/record_file.h"

namespace llmctl::data {

// Record has a `document`, by which the file's one section is sorted.
template <typename Record>
class RecordLookup {
 public:
  explicit RecordLookup(RecordFile file) : file_(std::move(file)) {}

  const RecordFile& file() const { return file_; }

  // Reads all of it: records that are looked up singly are known to be whole afterwards.
  absl::Status Verify() {
    SectionReader all(file_, 0);
    block_.resize(kBlockRecords);
    while (true) {
      LLM_ASSIGN_OR_RETURN(uint64_t read, all.Read(block_.data(), block_.size()));
      if (read == 0) break;
    }
    return Load(0);
  }

  // Appends the records of `document`.
  absl::Status Find(uint64_t document, std::vector<Record>& out) {
    LLM_RETURN_IF_ERROR(Seek(document));
    while (at_ < block_.size() && block_[at_].document == document) {
      out.push_back(block_[at_]);
      if (++at_ == block_.size()) LLM_RETURN_IF_ERROR(Load(block_first_ + block_.size()));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr uint64_t kBlockRecords = 2048;

  // at_ becomes the first record of `document` or of one behind it.
  absl::Status Seek(uint64_t document) {
    const bool in_reach = !block_.empty() && (block_first_ == 0 || block_.front().document < document);
    if (!in_reach) LLM_RETURN_IF_ERROR(Search(document));
    // The block at hand, the one behind it, and only then a search.
    if (IsBehind(document)) LLM_RETURN_IF_ERROR(Load(block_first_ + block_.size()));
    if (IsBehind(document)) LLM_RETURN_IF_ERROR(Search(document));
    at_ = std::lower_bound(block_.begin(), block_.end(), document,
                           [](const Record& record, uint64_t wanted) { return record.document < wanted; }) -
          block_.begin();
    return absl::OkStatus();
  }

  bool IsBehind(uint64_t document) const { return !block_.empty() && block_.back().document < document; }

  absl::Status Search(uint64_t document) {
    uint64_t low = 0, high = file_.records();
    while (low < high) {
      uint64_t middle = low + (high - low) / 2;
      Record record;
      LLM_RETURN_IF_ERROR(file_.Read(middle, 1, &record));
      if (record.document < document) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return Load(low);
  }

  absl::Status Load(uint64_t first) {
    block_first_ = first;
    at_ = 0;
    block_.resize(std::min(kBlockRecords, file_.records() - first));
    return file_.Read(first, block_.size(), block_.data());
  }

  RecordFile file_;
  uint64_t block_first_ = 0;
  std::vector<Record> block_;
  size_t at_ = 0;
};

}  // namespace llmctl::data
