// Loader: the batches of a run, read ahead of time on a thread of its own.
//
// What a rank reads is a pure function: the samples of a step are [first, first + global batch), ranks take
// contiguous parts of them, and a part is cut into micro-batches of which only the last may be smaller. The
// thread merely runs ahead, so prefetching, restarts and the number of ranks cannot change the data.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

#include "worker/data/shards/dataset.h"
#include "worker/data/shards/sampler.h"

namespace llmctl::data {

struct SampleRange {
  int64_t begin = 0;
  int64_t end = 0;  // one past the last
  int64_t size() const { return end - begin; }
  bool operator==(const SampleRange&) const = default;
};

// The part of [first_sample, first_sample + count) that is `rank`'s: parts are contiguous, in rank order, and
// differ by at most one sample (the first ranks have the larger ones).
SampleRange RankSamples(int64_t first_sample, int64_t count, int rank, int world_size);

struct MicroBatch {
  int64_t first_sample = 0;
  int samples = 0;
  int sequence_length = 0;
  // Row-major [samples][sequence_length]; targets are the inputs one token on, or -1 where none counts: in the padding
  // of a packed row, and where the next token is the start of a piece that goes on with another row's document.
  std::vector<int32_t> inputs;
  std::vector<int32_t> targets;
  // Where in `inputs` a document begins, ascending: an attention mask keeps each position to those from the last of
  // these on, and positions count from it. A sample begins one, and so does its padding; at the end stands the size of
  // `inputs`. (What FlashAttention calls cu_seqlens.)
  std::vector<int32_t> document_starts;
};

struct BatchOptions {
  int micro_batch_size = 0;
  int vocabulary_size = 0;
  int padding_id = 0;  // of packed rows
};

BatchOptions BatchOptionsOf(const DatasetManifest& manifest, int micro_batch_size);

// Reads `range`, in order. DataLoss when a token is not in the vocabulary, or the index is damaged where it is needed.
absl::StatusOr<std::vector<MicroBatch>> ReadMicroBatches(const ShardReader& reader, const Sampler& sampler,
                                                         SampleRange range, const BatchOptions& options);

struct LoaderOptions {
  SamplerSpec sampler;
  int64_t first_sample = 0;  // consumed so far
  int global_batch_size = 0;
  int rank = 0;
  int world_size = 1;
  BatchOptions batch;
  int prefetched_steps_max = 4;
};

// One rank's share of one step.
struct StepBatch {
  int64_t first_sample = 0;  // of the whole step
  std::vector<MicroBatch> micro_batches;
  double wait_seconds = 0;  // how long Next() had nothing to give
};

// Next() is called from one thread. Destruction stops the thread.
class Loader {
 public:
  // `reader` outlives the loader. InvalidArgument if the split has no whole window, or the batch is smaller than
  // the world.
  static absl::StatusOr<std::unique_ptr<Loader>> Create(const ShardReader& reader, const LoaderOptions& options);
  virtual ~Loader() = default;
  // The next step's batch. After an error every call returns it.
  virtual absl::StatusOr<StepBatch> Next() = 0;
};

}  // namespace llmctl::data
