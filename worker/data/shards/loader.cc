#include "worker/data/shards/loader.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/mutex.h"

namespace llmctl::data {
namespace {

absl::Status CheckOptions(const ShardReader& reader, const LoaderOptions& options) {
  CHECK(options.rank >= 0 && options.rank < options.world_size) << options.rank << " of " << options.world_size;
  CHECK_EQ(options.sampler.tokens, reader.tokens());
  CHECK_GT(options.micro_batch_size, 0);
  CHECK_GT(options.prefetched_steps_max, 0);
  if (WindowCount(options.sampler) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the split has ", reader.tokens(), " tokens, which is less than one sample of ",
                     options.sampler.sequence_length, " + 1; shorten sequence_length or add text"));
  }
  if (options.global_batch_size < options.world_size) {
    return absl::InvalidArgumentError(absl::StrCat("global_batch_size is ", options.global_batch_size,
                                                   ", but there are ", options.world_size,
                                                   " ranks: every rank needs a sample"));
  }
  return absl::OkStatus();
}

absl::Status FillSample(const ShardReader& reader, const SamplerSpec& spec, int64_t index, int vocabulary_size,
                        MicroBatch& batch) {
  std::vector<int32_t> window(spec.sequence_length + 1);
  int64_t start = SampleStart(spec, index);
  reader.Copy(start, absl::MakeSpan(window));
  // An id out of range would index past the embedding.
  int32_t largest = *std::max_element(window.begin(), window.end());
  int32_t smallest = *std::min_element(window.begin(), window.end());
  if (smallest < 0 || largest >= vocabulary_size) {
    return absl::DataLossError(absl::StrCat("sample ", index, " (tokens from ", start, " on) has token ",
                                            smallest < 0 ? smallest : largest, ", the vocabulary has ", vocabulary_size,
                                            "; check the dataset with `llmctl data verify`"));
  }
  batch.inputs.insert(batch.inputs.end(), window.begin(), window.end() - 1);
  batch.targets.insert(batch.targets.end(), window.begin() + 1, window.end());
  return absl::OkStatus();
}

class PrefetchingLoader : public Loader {
 public:
  PrefetchingLoader(const ShardReader& reader, const LoaderOptions& options)
      : reader_(reader), options_(options), thread_([this] { Run(); }) {}

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
        ReadMicroBatches(reader_, options_.sampler, range, options_.micro_batch_size, options_.vocabulary_size);
    if (!batches.ok()) return batches.status();
    return StepBatch{first, *std::move(batches), 0};
  }

  const ShardReader& reader_;
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

absl::StatusOr<std::vector<MicroBatch>> ReadMicroBatches(const ShardReader& reader, const SamplerSpec& spec,
                                                         SampleRange range, int micro_batch_size, int vocabulary_size) {
  std::vector<MicroBatch> out;
  for (int64_t at = range.begin; at < range.end; at += micro_batch_size) {
    int samples = static_cast<int>(std::min<int64_t>(micro_batch_size, range.end - at));
    MicroBatch batch{at, samples, spec.sequence_length, {}, {}};
    batch.inputs.reserve(int64_t{samples} * spec.sequence_length);
    batch.targets.reserve(int64_t{samples} * spec.sequence_length);
    for (int i = 0; i < samples; ++i) {
      absl::Status filled = FillSample(reader, spec, at + i, vocabulary_size, batch);
      if (!filled.ok()) return filled;
    }
    out.push_back(std::move(batch));
  }
  return out;
}

absl::StatusOr<std::unique_ptr<Loader>> Loader::Create(const ShardReader& reader, const LoaderOptions& options) {
  absl::Status valid = CheckOptions(reader, options);
  if (!valid.ok()) return valid;
  return std::make_unique<PrefetchingLoader>(reader, options);
}

}  // namespace llmctl::data
