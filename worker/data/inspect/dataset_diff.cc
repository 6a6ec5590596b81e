#include "worker/data/inspect/dataset_diff.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/base/digest.h"
#include "common/base/status.h"
#include "worker/data/spill/external_sort.h"

namespace llmctl::data {
namespace {

// Documents that begin with so many equal tokens, or as many bytes of text times four, are one document, changed.
constexpr size_t kBeginningTokens = 32;
constexpr size_t kBytesPerToken = 4;

struct Key {
  uint64_t high = 0;
  uint64_t low = 0;
  uint64_t beginning = 0;
  int64_t number = 0;
  uint32_t side = 0;  // 0: before, 1: after
  uint32_t split = 0;

  bool operator<(const Key& other) const {
    return std::tie(high, low, side, split, number) <
           std::tie(other.high, other.low, other.side, other.split, other.number);
  }
  bool SameContent(const Key& other) const { return high == other.high && low == other.low; }
};

// The same, by how the document begins.
struct BeginningKey : Key {
  bool operator<(const BeginningKey& other) const {
    return std::tie(beginning, side, split, number) < std::tie(other.beginning, other.side, other.split, other.number);
  }
};

class Differ {
 public:
  Differ(const DatasetView& before, const DatasetView& after, const DiffOptions& options, SpillFiles& files)
      : views_{&before, &after},
        options_(options),
        all_(PlaceFor(files, "all")),
        unmatched_(PlaceFor(files, "unmatched")) {
    out_.by_text = before.tokenizer().digest() != after.tokenizer().digest();
  }

  absl::StatusOr<DatasetDiff> Run() {
    for (uint32_t side : {0u, 1u}) LLM_RETURN_IF_ERROR(AddAll(side));
    LLM_RETURN_IF_ERROR(all_.Finish([this](const Key& key) { return TakeByContent(key); }));
    LLM_RETURN_IF_ERROR(EndContent());
    LLM_RETURN_IF_ERROR(unmatched_.Finish([this](const BeginningKey& key) { return TakeByBeginning(key); }));
    EndBeginning();
    return out_;
  }

 private:
  MergePlace PlaceFor(SpillFiles& files, absl::string_view name) const {
    return {{&files, std::max(kTaskMemoryMin, options_.memory_bytes / 2)},
            absl::StrCat(options_.folder, "/", name),
            {RecordKind::kTextKeys, sizeof(Key), DigestOf("diff of datasets")}};
  }

  absl::Status AddAll(uint32_t side) {
    const DatasetView& view = *views_[side];
    for (uint32_t split = 0; split < view.manifest().splits.size(); ++split) {
      const std::string& name = view.manifest().splits[split].name;
      LLM_ASSIGN_OR_RETURN(const ShardReader* reader, view.Split(name));
      for (int64_t i = 0; i < reader->sequences(); ++i) {
        LLM_ASSIGN_OR_RETURN(Key key, KeyOf(view, name, i));
        key.number = i;
        key.side = side;
        key.split = split;
        LLM_RETURN_IF_ERROR(all_.Add(key));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Key> KeyOf(const DatasetView& view, const std::string& split, int64_t document) const {
    std::string text;
    std::vector<int32_t> tokens;
    absl::string_view bytes;
    if (out_.by_text) {
      LLM_ASSIGN_OR_RETURN(text, view.Text(split, document));
      bytes = text;
    } else {
      LLM_ASSIGN_OR_RETURN(tokens, view.Tokens(split, document));
      bytes = {reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(int32_t)};
    }
    size_t beginning = kBeginningTokens * (out_.by_text ? kBytesPerToken : sizeof(int32_t));
    return Key{Fingerprint64(bytes, 1), Fingerprint64(bytes, 2), Fingerprint64(bytes.substr(0, beginning), 3)};
  }

  DatasetDiff::Place PlaceOf(const Key& key) const {
    return {views_[key.side]->manifest().splits[key.split].name, key.number};
  }

  // Keys come by content, those of the first dataset before those of the second: of equal ones, the first of one is
  // the first of the other, and what is left over is unmatched.
  absl::Status TakeByContent(const Key& key) {
    if (!group_.empty() && !group_.front().SameContent(key)) LLM_RETURN_IF_ERROR(EndContent());
    if (key.side == 1 && matched_ < group_.size()) {
      const Key& other = group_[matched_++];
      ++out_.same;
      if (PlaceOf(other).split != PlaceOf(key).split) ++out_.moved;
      return absl::OkStatus();
    }
    if (key.side == 0) {
      group_.push_back(key);
      return absl::OkStatus();
    }
    // More in the second than in the first.
    return unmatched_.Add(BeginningKey{key});
  }

  absl::Status EndContent() {
    for (size_t i = matched_; i < group_.size(); ++i) LLM_RETURN_IF_ERROR(unmatched_.Add(BeginningKey{group_[i]}));
    group_.clear();
    matched_ = 0;
    return absl::OkStatus();
  }

  // As above, by beginning: what finds a partner was changed.
  absl::Status TakeByBeginning(const BeginningKey& key) {
    if (!group_.empty() && group_.front().beginning != key.beginning) EndBeginning();
    if (key.side == 0) {
      group_.push_back(key);
    } else if (matched_ < group_.size()) {
      ++out_.changed;
      const Key& other = group_[matched_++];
      if (out_.changed_examples.size() < options_.examples_max) {
        out_.changed_examples.push_back({PlaceOf(other), PlaceOf(key)});
      }
    } else {
      ++out_.added;
      if (out_.added_examples.size() < options_.examples_max) out_.added_examples.push_back(PlaceOf(key));
    }
    return absl::OkStatus();
  }

  void EndBeginning() {
    for (size_t i = matched_; i < group_.size(); ++i) {
      ++out_.removed;
      if (out_.removed_examples.size() < options_.examples_max) out_.removed_examples.push_back(PlaceOf(group_[i]));
    }
    group_.clear();
    matched_ = 0;
  }

  const DatasetView* views_[2];
  const DiffOptions& options_;
  ExternalSorter<Key> all_;
  ExternalSorter<BeginningKey> unmatched_;
  std::vector<Key> group_;  // of equal keys, those of the first dataset
  size_t matched_ = 0;
  DatasetDiff out_;
};

}  // namespace

absl::StatusOr<DatasetDiff> DiffDatasets(const DatasetView& before, const DatasetView& after,
                                         const DiffOptions& options, SpillFiles& files) {
  absl::StatusOr<DatasetDiff> diff = Differ(before, after, options, files).Run();
  absl::Status removed = files.RemoveFolder(absl::StrCat(options.folder, "/all"));
  removed.Update(files.RemoveFolder(absl::StrCat(options.folder, "/unmatched")));
  if (!diff.ok()) return diff;
  if (!removed.ok()) return removed;
  return diff;
}

}  // namespace llmctl::data
