#include "worker/data/shards/loader.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/base/status.h"

namespace llmctl::data {
namespace {

absl::Status CheckOptions(const ShardReader& reader, const LoaderOptions& options) {
  CHECK(options.rank >= 0 && options.rank < options.world_size) << options.rank << " of " << options.world_size;
  CHECK_EQ(options.sampler.tokens, reader.tokens());
  CHECK_EQ(options.sampler.rows, reader.rows());
  CHECK_GT(options.batch.micro_batch_size, 0);
  CHECK_GT(options.prefetched_steps_max, 0);
  if (options.global_batch_size < options.world_size) {
    return absl::InvalidArgumentError(absl::StrCat("global_batch_size is ", options.global_batch_size,
                                                   ", but there are ", options.world_size,
                                                   " ranks: every rank needs a sample"));
  }
  return absl::OkStatus();
}

// The tokens that one sample is made of, and where in them documents begin. Reused from sample to sample.
struct Window {
  int64_t begin = 0;  // in the stream
  std::vector<int32_t> tokens;
  std::vector<int32_t> starts;     // the first is 0
  std::vector<int32_t> continued;  // of these, those of pieces that go on with another row's document
};

// Fills samples of one reader and sampler.
class SampleFiller {
 public:
  SampleFiller(const ShardReader& reader, const Sampler& sampler, const BatchOptions& options)
      : reader_(reader), sampler_(sampler), options_(options), length_(sampler.spec().sequence_length) {}

  // Has the system read what `range` needs while other samples are filled.
  void Announce(SampleRange range) const {
    for (int64_t i = range.begin; i < range.end; ++i) {
      const int64_t start = sampler_.Start(i);
      if (reader_.rows() == 0) {
        reader_.WillNeed(start, length_ + 1);
        continue;
      }
      // What is wrong with a row is said when it is read.
      absl::StatusOr<ShardReader::SequenceRange> pieces = reader_.Row(start);
      if (!pieces.ok()) continue;
      absl::StatusOr<ShardReader::Sequence> first = reader_.At(pieces->begin);
      if (first.ok()) reader_.WillNeed(first->begin, std::min<int64_t>(length_ + 1, reader_.tokens() - first->begin));
    }
  }

  absl::Status Fill(int64_t index, MicroBatch& batch) {
    absl::Status found = reader_.rows() > 0 ? FindRow(sampler_.Start(index)) : FindWindow(sampler_.Start(index));
    if (!found.ok()) return Annotate(found, "sample ", index);
    reader_.Copy(window_.begin, absl::MakeSpan(window_.tokens));
    LLM_RETURN_IF_ERROR(CheckTokens(index));
    Append(batch);
    return absl::OkStatus();
  }

 private:
  absl::Status FindWindow(int64_t start) {
    window_.begin = start;
    window_.tokens.resize(length_ + 1);
    window_.starts = {0};
    int64_t i = reader_.Find(start);
    LLM_ASSIGN_OR_RETURN(ShardReader::Sequence document, reader_.At(i));
    int64_t end = document.begin + document.length;
    if (document.begin > start || end <= start) return OutOfOrder(i);
    while (end < start + length_) {
      window_.starts.push_back(static_cast<int32_t>(end - start));
      if (++i == reader_.sequences()) return OutOfOrder(i);
      LLM_ASSIGN_OR_RETURN(document, reader_.At(i));
      if (document.begin != end) return OutOfOrder(i);
      end += document.length;
    }
    return absl::OkStatus();
  }

  absl::Status FindRow(int64_t row) {
    LLM_ASSIGN_OR_RETURN(ShardReader::SequenceRange pieces, reader_.Row(row));
    window_.starts.clear();
    window_.continued.clear();
    int64_t size = 0;
    for (int64_t i = pieces.begin; i < pieces.end; ++i) {
      LLM_ASSIGN_OR_RETURN(ShardReader::Sequence piece, reader_.At(i));
      if (size == 0) window_.begin = piece.begin;
      if (piece.begin != window_.begin + size) return OutOfOrder(i);
      window_.starts.push_back(static_cast<int32_t>(size));
      if (piece.continues) window_.continued.push_back(static_cast<int32_t>(size));
      size += piece.length;
      if (size > length_ + 1) {
        return absl::DataLossError(absl::StrCat("row ", row, " has more than ", length_ + 1,
                                                " tokens; check the dataset with `llmctl data verify`"));
      }
    }
    window_.tokens.resize(size);
    return absl::OkStatus();
  }

  static absl::Status OutOfOrder(int64_t sequence) {
    return absl::DataLossError(absl::StrCat("index: sequence ", sequence,
                                            " does not follow the one before it; check the dataset with `llmctl data "
                                            "verify`"));
  }

  // An id out of range would index past the embedding.
  absl::Status CheckTokens(int64_t index) const {
    int32_t largest = *std::max_element(window_.tokens.begin(), window_.tokens.end());
    int32_t smallest = *std::min_element(window_.tokens.begin(), window_.tokens.end());
    if (smallest >= 0 && largest < options_.vocabulary_size) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("sample ", index, " (tokens from ", window_.begin, " on) has token ",
                                            smallest < 0 ? smallest : largest, ", the vocabulary has ",
                                            options_.vocabulary_size,
                                            "; check the dataset with `llmctl data verify`"));
  }

  void Append(MicroBatch& batch) const {
    const std::vector<int32_t>& tokens = window_.tokens;
    const int32_t at = static_cast<int32_t>(batch.inputs.size());
    const size_t shown = std::min<size_t>(tokens.size(), length_);
    batch.inputs.insert(batch.inputs.end(), tokens.begin(), tokens.begin() + shown);
    batch.inputs.resize(at + length_, options_.padding_id);
    batch.targets.insert(batch.targets.end(), tokens.begin() + 1, tokens.end());
    batch.targets.resize(at + length_, -1);
    // What the end of one document says of the middle of another is nothing.
    for (int32_t start : window_.continued) {
      if (start > 0) batch.targets[at + start - 1] = -1;
    }
    for (int32_t start : window_.starts) {
      if (start < length_) batch.document_starts.push_back(at + start);
    }
    if (shown < static_cast<size_t>(length_)) batch.document_starts.push_back(at + static_cast<int32_t>(shown));
  }

  const ShardReader& reader_;
  const Sampler& sampler_;
  const BatchOptions& options_;
  const int length_;
  Window window_;
};

class PrefetchingLoader : public Loader {
 public:
  PrefetchingLoader(const ShardReader& reader, Sampler sampler, const LoaderOptions& options)
      : reader_(reader), sampler_(std::move(sampler)), options_(options), thread_([this] { Run(); }) {}

  ~PrefetchingLoader() override {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
    }
    room_.NotifyAll();
    thread_.join();
  }

  absl::StatusOr<StepBatch> Next() override {
    auto asked = std::chrono::steady_clock::now();
    MutexLock lock(mutex_);
    while (ready_.empty()) filled_.Wait(mutex_);
    if (!ready_.front().ok()) return ready_.front().status();
    StepBatch batch = *std::move(ready_.front());
    ready_.pop_front();
    room_.NotifyOne();
    batch.wait_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - asked).count();
    return batch;
  }

 private:
  void Run() {
    for (int64_t first = options_.first_sample;; first += options_.global_batch_size) {
      absl::StatusOr<StepBatch> batch = Read(first);
      MutexLock lock(mutex_);
      while (!stopping_ && ready_.size() >= static_cast<size_t>(options_.prefetched_steps_max)) room_.Wait(mutex_);
      if (stopping_) return;
      bool failed = !batch.ok();
      ready_.push_back(std::move(batch));
      filled_.NotifyOne();
      if (failed) return;
    }
  }

  absl::StatusOr<StepBatch> Read(int64_t first) const {
    SampleRange range = RankSamples(first, options_.global_batch_size, options_.rank, options_.world_size);
    absl::StatusOr<std::vector<MicroBatch>> batches =
        ReadMicroBatches(reader_, sampler_, range, options_.batch);
    if (!batches.ok()) return batches.status();
    return StepBatch{first, *std::move(batches), 0};
  }

  const ShardReader& reader_;
  const Sampler sampler_;
  const LoaderOptions options_;
  Mutex mutex_;
  CondVar filled_;
  CondVar room_;
  std::deque<absl::StatusOr<StepBatch>> ready_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace

SampleRange RankSamples(int64_t first_sample, int64_t count, int rank, int world_size) {
  int64_t share = count / world_size, larger = count % world_size;
  int64_t begin = first_sample + rank * share + std::min<int64_t>(rank, larger);
  return {begin, begin + share + (rank < larger ? 1 : 0)};
}

BatchOptions BatchOptionsOf(const DatasetManifest& manifest, int micro_batch_size) {
  return {.micro_batch_size = micro_batch_size,
          .vocabulary_size = manifest.vocabulary_size,
          .padding_id = manifest.packing.has_value() ? manifest.packing->padding_id : 0};
}

absl::StatusOr<std::vector<MicroBatch>> ReadMicroBatches(const ShardReader& reader, const Sampler& sampler,
                                                         SampleRange range, const BatchOptions& options) {
  SampleFiller filler(reader, sampler, options);
  filler.Announce(range);
  const int length = sampler.spec().sequence_length;
  std::vector<MicroBatch> out;
  for (int64_t at = range.begin; at < range.end; at += options.micro_batch_size) {
    int samples = static_cast<int>(std::min<int64_t>(options.micro_batch_size, range.end - at));
    MicroBatch& batch = out.emplace_back();
    batch.first_sample = at;
    batch.samples = samples;
    batch.sequence_length = length;
    batch.inputs.reserve(int64_t{samples} * length);
    batch.targets.reserve(int64_t{samples} * length);
    for (int i = 0; i < samples; ++i) LLM_RETURN_IF_ERROR(filler.Fill(at + i, batch));
    batch.document_starts.push_back(static_cast<int32_t>(batch.inputs.size()));
  }
  return out;
}

absl::StatusOr<std::unique_ptr<Loader>> Loader::Create(const ShardReader& reader, const LoaderOptions& options) {
  LLM_RETURN_IF_ERROR(CheckOptions(reader, options));
  LLM_ASSIGN_OR_RETURN(Sampler sampler, Sampler::Create(options.sampler));
  return std::make_unique<PrefetchingLoader>(reader, std::move(sampler), options);
}

}  // namespace llmctl::data
