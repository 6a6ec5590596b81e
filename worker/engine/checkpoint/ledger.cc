#include "worker/engine/checkpoint/ledger.h"

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/status.h"

namespace llmctl::checkpoint {
namespace {

absl::Status CheckSegment(const LedgerSegment& segment, int64_t expected_first) {
  if (segment.first_sample != expected_first) {
    return absl::InvalidArgumentError(absl::StrCat("starts at sample ", segment.first_sample, ", expected ",
                                                   expected_first, ": samples would be lost or seen twice"));
  }
  if (segment.last_sample < segment.first_sample) {
    return absl::InvalidArgumentError(
        absl::StrCat("ends at sample ", segment.last_sample, ", before its start ", segment.first_sample));
  }
  int64_t next = segment.first_sample;
  for (const SampleRun& skip : segment.skips) {
    if (skip.first_sample < next || skip.last_sample < skip.first_sample || skip.last_sample > segment.last_sample) {
      return absl::InvalidArgumentError(absl::StrCat("its skip [", skip.first_sample, ", ", skip.last_sample,
                                                     "] is outside the segment or out of order"));
    }
    next = skip.last_sample + 1;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Ledger::Check(const std::vector<LedgerSegment>& segments) {
  int64_t next = 0;
  for (size_t i = 0; i < segments.size(); ++i) {
    LLM_RETURN_IF_ERROR(Annotate(CheckSegment(segments[i], next), "ledger segment ", i));
    if (i > 0 && segments[i].generation < segments[i - 1].generation) {
      return absl::InvalidArgumentError(absl::StrCat("ledger segment ", i, ": generation ", segments[i].generation,
                                                     " follows generation ", segments[i - 1].generation));
    }
    next = segments[i].last_sample + 1;
  }
  return absl::OkStatus();
}

void Ledger::Append(const std::string& sampler_digest, int64_t generation, int64_t count) {
  CHECK_GT(count, 0);
  int64_t first = next_sample();
  if (segments_.empty() || segments_.back().sampler_digest != sampler_digest ||
      segments_.back().generation != generation) {
    segments_.push_back({sampler_digest, first, first, generation, {}});
  }
  segments_.back().last_sample = first + count - 1;
}

void Ledger::AppendSkipped(const std::string& sampler_digest, int64_t generation, int64_t count) {
  int64_t first = next_sample();
  Append(sampler_digest, generation, count);
  std::vector<SampleRun>& skips = segments_.back().skips;
  if (skips.empty() || skips.back().last_sample + 1 != first) skips.push_back({first, first});
  skips.back().last_sample = first + count - 1;
}

}  // namespace llmctl::checkpoint
