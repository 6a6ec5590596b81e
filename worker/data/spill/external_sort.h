// Sorting more records than memory holds: sorted runs in files, then one merge that reads them all side by side.
//
// The order of the result is that of the records alone. How many runs there are and how they were cut, which depends
// on the memory given and on how the input was split, shows nowhere in it.
//
// A record is trivially copyable and has operator<. One with a `document` has SortedRun::first_document added to it; of
// those with Absorb(), equal ones within a run become one (whoever takes the sorted records still meets those of
// different runs).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "worker/data/spill/record_file.h"
#include "worker/data/spill/spill_files.h"

namespace llmctl::data {

// What a task may use.
struct TaskResources {
  SpillFiles* files;
  // For records held at once; besides it a task needs about 2 MiB, whatever the input.
  uint64_t memory_bytes;
};

// Less would make merges of a few records each.
constexpr uint64_t kTaskMemoryMin = 256 << 10;
absl::Status Validate(const TaskResources& resources);

// A sorted section of a record file. Its documents are counted from `first_document` on.
struct SortedRun {
  std::string path;
  RecordFileType type;
  size_t section = 0;
  uint64_t first_document = 0;
  uint64_t identity = 0;  // that the file must have; 0 for any
};

// Refuses a file of another identity, or without such a section.
absl::StatusOr<RecordFile> OpenRun(SpillFiles& files, const SortedRun& run);

struct MergePlace {
  TaskResources resources;
  std::string folder;  // for files that mean nothing after the task
  RecordFileType type;
};

namespace external_sort_internal {

// Buffers smaller than this make the disk seek; more files than this at once meet limits of the system.
constexpr uint64_t kBufferBytesMin = 16 << 10;
constexpr uint64_t kBufferBytesMax = 1 << 20;
constexpr uint64_t kFilesMax = 256;

template <typename Record>
class RunCursor {
 public:
  RunCursor(RecordFile file, const SortedRun& run, uint64_t buffer_bytes)
      : file_(std::make_unique<RecordFile>(std::move(file))),
        reader_(*file_, run.section),
        first_document_(run.first_document),
        buffer_(std::max<uint64_t>(1, buffer_bytes / sizeof(Record))) {}

  const Record& current() const { return buffer_[at_]; }

  // False at the end.
  absl::StatusOr<bool> Next() {
    if (++at_ < filled_) return true;
    LLM_ASSIGN_OR_RETURN(filled_, reader_.Read(buffer_.data(), buffer_.size()));
    if constexpr (requires(Record record) { record.document; }) {
      for (size_t i = 0; i < filled_; ++i) buffer_[i].document += first_document_;
    }
    at_ = 0;
    return filled_ > 0;
  }

 private:
  std::unique_ptr<RecordFile> file_;
  SectionReader reader_;
  uint64_t first_document_;
  std::vector<Record> buffer_;
  size_t at_ = 0;
  size_t filled_ = 0;
};

template <typename Record>
void SortRun(std::vector<Record>& records) {
  std::sort(records.begin(), records.end());
  if constexpr (requires(Record a, const Record& b) { a.Absorb(b); }) {
    size_t kept = 0;
    for (size_t i = 1; i < records.size(); ++i) {
      if (records[kept] < records[i]) {
        records[++kept] = records[i];
      } else {
        records[kept].Absorb(records[i]);
      }
    }
    if (!records.empty()) records.resize(kept + 1);
  }
}

template <typename Record>
absl::Status MergeOnce(const TaskResources& resources, const std::vector<SortedRun>& runs,
                       absl::FunctionRef<absl::Status(const Record&)> emit) {
  if (runs.empty()) return absl::OkStatus();
  const uint64_t buffer = std::min(kBufferBytesMax, resources.memory_bytes / runs.size());
  std::vector<RunCursor<Record>> cursors;
  cursors.reserve(runs.size());
  std::vector<size_t> heap;
  auto after = [&](size_t a, size_t b) { return cursors[b].current() < cursors[a].current(); };
  for (const SortedRun& run : runs) {
    LLM_ASSIGN_OR_RETURN(RecordFile file, OpenRun(*resources.files, run));
    cursors.emplace_back(std::move(file), run, buffer);
    LLM_ASSIGN_OR_RETURN(bool more, cursors.back().Next());
    if (more) heap.push_back(cursors.size() - 1);
  }
  std::make_heap(heap.begin(), heap.end(), after);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), after);
    RunCursor<Record>& least = cursors[heap.back()];
    LLM_RETURN_IF_ERROR(emit(least.current()));
    LLM_ASSIGN_OR_RETURN(bool more, least.Next());
    if (more) {
      std::push_heap(heap.begin(), heap.end(), after);
    } else {
      heap.pop_back();
    }
  }
  return absl::OkStatus();
}

}  // namespace external_sort_internal

// All records of the runs in order. More runs than buffers fit the memory are merged in several rounds.
template <typename Record>
absl::Status MergeRuns(const MergePlace& place, std::vector<SortedRun> runs,
                       absl::FunctionRef<absl::Status(const Record&)> emit) {
  namespace internal = external_sort_internal;
  const uint64_t at_once = std::clamp<uint64_t>(place.resources.memory_bytes / internal::kBufferBytesMin, 2,
                                                internal::kFilesMax);
  for (int round = 0; runs.size() > at_once; ++round) {
    std::vector<SortedRun> merged;
    for (size_t first = 0; first < runs.size(); first += at_once) {
      size_t end = std::min<size_t>(runs.size(), first + at_once);
      std::vector<SortedRun> group(runs.begin() + first, runs.begin() + end);
      std::string path = absl::StrCat(place.folder, "/round-", round, "-", merged.size());
      LLM_ASSIGN_OR_RETURN(RecordFileWriter out, RecordFileWriter::Create(*place.resources.files, path, place.type));
      auto write = [&](const Record& record) { return out.Append(&record, 1); };
      LLM_RETURN_IF_ERROR(internal::MergeOnce<Record>(place.resources, group, write));
      LLM_ASSIGN_OR_RETURN(uint64_t identity, out.Commit({}));
      merged.push_back({path, place.type, 0, 0, identity});
    }
    runs = std::move(merged);
  }
  return internal::MergeOnce<Record>(place.resources, runs, emit);
}

// Collects records in any order, gives them back sorted. While it collects it holds resources.memory_bytes of them.
template <typename Record>
class ExternalSorter {
 public:
  // Runs go to "<place.folder>/run-N".
  explicit ExternalSorter(MergePlace place)
      : place_(std::move(place)), capacity_(place_.resources.memory_bytes / sizeof(Record)) {}

  absl::Status Add(const Record& record) {
    if (held_.size() == capacity_) LLM_RETURN_IF_ERROR(Spill());
    if (held_.capacity() < capacity_ && held_.size() == held_.capacity()) {
      // Doubling, but never beyond the budget.
      held_.reserve(std::min<size_t>(capacity_, std::max<size_t>(1024, 2 * held_.size())));
    }
    held_.push_back(record);
    return absl::OkStatus();
  }

  // Once, at the end.
  absl::Status Finish(absl::FunctionRef<absl::Status(const Record&)> emit) {
    if (runs_.empty()) {
      external_sort_internal::SortRun(held_);
      for (const Record& record : held_) LLM_RETURN_IF_ERROR(emit(record));
      return absl::OkStatus();
    }
    LLM_RETURN_IF_ERROR(Spill());
    held_.shrink_to_fit();
    return MergeRuns<Record>(place_, std::move(runs_), emit);
  }

 private:
  absl::Status Spill() {
    if (held_.empty()) return absl::OkStatus();
    external_sort_internal::SortRun(held_);
    std::string path = absl::StrCat(place_.folder, "/run-", runs_.size());
    LLM_ASSIGN_OR_RETURN(RecordFileWriter out, RecordFileWriter::Create(*place_.resources.files, path, place_.type));
    LLM_RETURN_IF_ERROR(out.Append(held_.data(), held_.size()));
    LLM_ASSIGN_OR_RETURN(uint64_t identity, out.Commit({}));
    runs_.push_back({path, place_.type, 0, 0, identity});
    held_.clear();
    return absl::OkStatus();
  }

  MergePlace place_;
  size_t capacity_;
  std::vector<Record> held_;
  std::vector<SortedRun> runs_;
};

}  // namespace llmctl::data
