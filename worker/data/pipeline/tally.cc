#include "worker/data/pipeline/tally.h"

#include <algorithm>
#include <bit>

namespace llmctl::data {
namespace {

void PutCount(const Count& count, std::string& out) {
  PutVarint(count.documents, out);
  PutVarint(count.bytes, out);
}

Count ReadCount(WireReader& wire) {
  Count count;
  count.documents = static_cast<int64_t>(wire.Varint());
  count.bytes = static_cast<int64_t>(wire.Varint());
  return count;
}

void AddCount(const Count& from, Count& to) {
  to.documents += from.documents;
  to.bytes += from.bytes;
}

void PutHistogram(const SizeHistogram& histogram, std::string& out) {
  for (int64_t count : histogram.counts()) PutVarint(count, out);
}

void ReadHistogram(WireReader& wire, SizeHistogram& out) {
  for (int64_t& count : out.counts()) count = static_cast<int64_t>(wire.Varint());
}

void AddHistogram(const SizeHistogram& from, SizeHistogram& to) {
  for (size_t i = 0; i < from.counts().size(); ++i) to.counts()[i] += from.counts()[i];
}

void PutGroup(const Tally::Group& group, std::string& out) {
  PutCount(group.read, out);
  PutCount(group.kept, out);
  PutVarint(group.dropped.size(), out);
  for (const auto& [reason, count] : group.dropped) {
    PutBytes(reason, out);
    PutCount(count, out);
  }
  PutHistogram(group.read_bytes, out);
  PutHistogram(group.kept_bytes, out);
}

void ReadGroup(WireReader& wire, Tally::Group& group) {
  group.read = ReadCount(wire);
  group.kept = ReadCount(wire);
  for (uint64_t left = wire.Varint(); left > 0 && wire.ok(); --left) {
    std::string reason(wire.Bytes());
    group.dropped[reason] = ReadCount(wire);
  }
  ReadHistogram(wire, group.read_bytes);
  ReadHistogram(wire, group.kept_bytes);
}

void PutSample(const Sample& sample, std::string& out) {
  PutFixed64(sample.key, out);
  PutBytes(sample.place, out);
  PutBytes(sample.id, out);
  PutDouble(sample.measured, out);
  PutDouble(sample.threshold, out);
  PutBytes(sample.text, out);
}

Sample ReadSample(WireReader& wire) {
  Sample sample;
  sample.key = wire.Fixed64();
  sample.place = std::string(wire.Bytes());
  sample.id = std::string(wire.Bytes());
  sample.measured = wire.Double();
  sample.threshold = wire.Double();
  sample.text = std::string(wire.Bytes());
  return sample;
}

}  // namespace

void SizeHistogram::Add(int64_t size) {
  int bucket = size < 2 ? 0 : std::bit_width(static_cast<uint64_t>(size)) - 1;
  ++counts_[std::min(bucket, kBuckets - 1)];
}

Tally::Group& Tally::GroupOf(absl::string_view source, absl::string_view language) {
  return groups_[{std::string(source), std::string(language)}];
}

bool Tally::WantsSample(const std::string& reason, uint64_t key) const {
  auto found = samples_.find(reason);
  return found == samples_.end() || found->second.size() < kSamples || key < found->second.back().key;
}

void Tally::AddSample(const std::string& reason, Sample sample) {
  std::vector<Sample>& samples = samples_[reason];
  auto at = std::upper_bound(samples.begin(), samples.end(), sample.key,
                             [](uint64_t key, const Sample& other) { return key < other.key; });
  samples.insert(at, std::move(sample));
  if (samples.size() > kSamples) samples.pop_back();
}

void Tally::Add(const std::string& counter, int64_t count) {
  if (count != 0) counters_[counter] += count;
}

void Tally::Merge(const Tally& other) {
  for (const auto& [name, group] : other.groups_) {
    Group& to = groups_[name];
    AddCount(group.read, to.read);
    AddCount(group.kept, to.kept);
    for (const auto& [reason, count] : group.dropped) AddCount(count, to.dropped[reason]);
    AddHistogram(group.read_bytes, to.read_bytes);
    AddHistogram(group.kept_bytes, to.kept_bytes);
  }
  for (const auto& [reason, samples] : other.samples_) {
    for (const Sample& sample : samples) AddSample(reason, sample);
  }
  for (const auto& [name, count] : other.counters_) Add(name, count);
}

void Tally::Encode(std::string& out) const {
  PutVarint(groups_.size(), out);
  for (const auto& [name, group] : groups_) {
    PutBytes(name.first, out);
    PutBytes(name.second, out);
    PutGroup(group, out);
  }
  PutVarint(samples_.size(), out);
  for (const auto& [reason, samples] : samples_) {
    PutBytes(reason, out);
    PutVarint(samples.size(), out);
    for (const Sample& sample : samples) PutSample(sample, out);
  }
  PutVarint(counters_.size(), out);
  for (const auto& [name, count] : counters_) {
    PutBytes(name, out);
    PutVarint(count, out);
  }
}

absl::Status Tally::Decode(WireReader& wire) {
  *this = Tally();
  for (uint64_t left = wire.Varint(); left > 0 && wire.ok(); --left) {
    std::string source(wire.Bytes());
    std::string language(wire.Bytes());
    ReadGroup(wire, groups_[{std::move(source), std::move(language)}]);
  }
  for (uint64_t left = wire.Varint(); left > 0 && wire.ok(); --left) {
    std::string reason(wire.Bytes());
    for (uint64_t samples = wire.Varint(); samples > 0 && wire.ok(); --samples) AddSample(reason, ReadSample(wire));
  }
  for (uint64_t left = wire.Varint(); left > 0 && wire.ok(); --left) {
    std::string name(wire.Bytes());
    counters_[name] = static_cast<int64_t>(wire.Varint());
  }
  return wire.ok() ? absl::OkStatus() : absl::DataLossError("counts in the work folder are cut");
}

}  // namespace llmctl::data
