// What the trainer sorts and writes: n-grams as word ids, from the last word to the first.
//
// Sorted so, n-grams with the same ending stand together (those that begin differently), and the n-grams of one order
// stand as their endings do in the order below: orders are joined by reading them side by side.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/base/status.h"
#include "worker/data/spill/record_file.h"

namespace llmctl::data {

template <int N>
int CompareWords(const uint32_t* a, const uint32_t* b) {
  for (int i = 0; i < N; ++i) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

// Packed: what lies in files is all of a record, without gaps.
template <int N>
struct [[gnu::packed, gnu::aligned(4)]] GramCount {
  uint32_t words[N];
  uint64_t count;

  bool operator<(const GramCount& other) const { return CompareWords<N>(words, other.words) < 0; }
  void Absorb(const GramCount& other) { count += other.count; }
};

// Not yet interpolated: p(w|h) = probability + weight p(w|shorter h).
template <int N>
struct [[gnu::packed, gnu::aligned(4)]] SmoothedGram {
  uint32_t words[N];
  double probability;
  double weight;

  bool operator<(const SmoothedGram& other) const { return CompareWords<N>(words, other.words) < 0; }
};

// A probability of an n-gram, or the back-off weight of a context.
template <int N>
struct [[gnu::packed, gnu::aligned(4)]] GramValue {
  uint32_t words[N];
  double value;
};

inline RecordFileType GramFileType(size_t record_bytes) {
  return {RecordKind::kNgrams, static_cast<uint32_t>(record_bytes), DigestOf("n-gram trainer")};
}

// The records of a file, one at a time.
template <typename Record>
class RecordStream {
 public:
  static absl::StatusOr<RecordStream> Open(SpillFiles& files, const std::string& path) {
    LLM_ASSIGN_OR_RETURN(RecordFile file, RecordFile::Open(files, path, GramFileType(sizeof(Record))));
    RecordStream stream(std::make_unique<RecordFile>(std::move(file)));
    LLM_RETURN_IF_ERROR(stream.Next());
    return stream;
  }

  // Null at the end.
  const Record* current() const { return at_ < filled_ ? &buffer_[at_] : nullptr; }
  absl::Status Next() {
    if (++at_ < filled_) return absl::OkStatus();
    LLM_ASSIGN_OR_RETURN(filled_, reader_.Read(buffer_.data(), buffer_.size()));
    at_ = 0;
    return absl::OkStatus();
  }

 private:
  explicit RecordStream(std::unique_ptr<RecordFile> file)
      : file_(std::move(file)), reader_(*file_, 0), buffer_((64 << 10) / sizeof(Record)) {}

  std::unique_ptr<RecordFile> file_;
  SectionReader reader_;
  std::vector<Record> buffer_;
  size_t at_ = 0;
  size_t filled_ = 0;
};

}  // namespace llmctl::data
