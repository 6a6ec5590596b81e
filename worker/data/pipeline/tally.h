// What is counted on the way, in pieces that add up to the same whatever the pieces were: the numbers of the report.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "worker/data/pipeline/wire.h"

namespace llmctl::data {

struct Count {
  int64_t documents = 0;
  int64_t bytes = 0;
  void Add(int64_t size) {
    ++documents;
    bytes += size;
  }
};

// Documents by size: bucket b holds those of [2^b, 2^(b+1)) units, bucket 0 also the empty ones.
class SizeHistogram {
 public:
  static constexpr int kBuckets = 48;
  void Add(int64_t size);
  const std::array<int64_t, kBuckets>& counts() const { return counts_; }
  std::array<int64_t, kBuckets>& counts() { return counts_; }

 private:
  std::array<int64_t, kBuckets> counts_{};
};

// A few dropped documents of a reason, chosen by a hash of their place: the same however the work was cut.
struct Sample {
  uint64_t key = 0;
  std::string place;  // file:line
  std::string id;
  double measured = 0;
  double threshold = 0;
  std::string text;  // its beginning
};

// Counts files of which a part could not be read.
inline constexpr char kDamageCounter[] = "damaged files";

class Tally {
 public:
  static constexpr size_t kSamples = 5;  // per reason

  struct Group {
    Count read;
    Count kept;
    std::map<std::string, Count> dropped;  // by reason
    SizeHistogram read_bytes;
    SizeHistogram kept_bytes;
  };

  // By source and language; the language is empty for documents that were dropped before it was known.
  Group& GroupOf(absl::string_view source, absl::string_view language);
  // Whether a sample of this key would be taken: it costs the caller something to make one.
  bool WantsSample(const std::string& reason, uint64_t key) const;
  void AddSample(const std::string& reason, Sample sample);
  // Anything else that is counted: repairs, personal data found.
  void Add(const std::string& counter, int64_t count);

  void Merge(const Tally& other);

  const std::map<std::pair<std::string, std::string>, Group>& groups() const { return groups_; }
  const std::map<std::string, std::vector<Sample>>& samples() const { return samples_; }
  const std::map<std::string, int64_t>& counters() const { return counters_; }

  // To the end of `out`; reads back what was so written, DataLoss if it is something else.
  void Encode(std::string& out) const;
  absl::Status Decode(WireReader& wire);

 private:
  std::map<std::pair<std::string, std::string>, Group> groups_;
  std::map<std::string, std::vector<Sample>> samples_;  // ascending by key
  std::map<std::string, int64_t> counters_;
};

}  // namespace llmctl::data
