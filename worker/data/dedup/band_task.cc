#include <functional>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/status.h"
#include "worker/data/dedup/near_parts.h"
#include "worker/data/dedup/near_results.h"
#include "worker/data/dedup/sorted_records.h"

namespace llmctl::data {
namespace {

// The documents of one key, ascending: each is paired with the first, and with the one before it if pairs are going to
// be checked. A first document that is there by chance then does not keep the others apart.
class KeyGroup {
 public:
  KeyGroup(bool chained, ExternalSorter<KeyedDocument>& pairs) : chained_(chained), pairs_(pairs) {}

  absl::Status Add(bool same_key, uint64_t document) {
    if (!same_key) {
      first_ = last_ = document;
      return absl::OkStatus();
    }
    LLM_RETURN_IF_ERROR(pairs_.Add({document, first_}));
    if (chained_ && last_ != first_) LLM_RETURN_IF_ERROR(pairs_.Add({document, last_}));
    last_ = document;
    return absl::OkStatus();
  }

 private:
  const bool chained_;
  ExternalSorter<KeyedDocument>& pairs_;
  uint64_t first_ = 0;
  uint64_t last_ = 0;
};

template <typename Record>
absl::Status CollectPairs(const MergePlace& place, std::vector<SortedRun> runs,
                          std::function<bool(const Record&, const Record&)> same, KeyGroup group) {
  std::optional<Record> before;
  return MergeRuns<Record>(place, std::move(runs), [&](const Record& record) {
    bool same_key = before && same(*before, record);
    before = record;
    return group.Add(same_key, record.document);
  });
}

}  // namespace

absl::Status RunBandTask(const NearPlan& plan, int band, const TaskResources& resources) {
  CHECK(band >= 0 && band < BandTasks(plan.settings)) << "a band of the plan";
  LLM_RETURN_IF_ERROR(Validate(resources));
  LLM_ASSIGN_OR_RETURN(NearParts parts, NearParts::Open(plan, *resources.files));
  const std::string folder = near_result::BandFolder(plan, band);
  const RecordFileType type = near_result::BandType(plan, parts, band);
  if (RecordFile::Open(*resources.files, folder + "/pairs", type).ok()) return absl::OkStatus();
  LLM_RETURN_IF_ERROR(resources.files->RemoveFolder(folder));

  // Half of the memory for the runs that are read, half for the pairs that come of them.
  const TaskResources half{resources.files, resources.memory_bytes / 2};
  ExternalSorter<KeyedDocument> pairs({half, folder + "/sorted", type});
  if (band < plan.settings.bands) {
    RecordFileType keys{RecordKind::kBandKeys, sizeof(KeyedDocument), type.digest};
    LLM_RETURN_IF_ERROR(CollectPairs<KeyedDocument>(
        {half, folder + "/merged", keys}, parts.input().Runs(NearFileType(plan.settings, RecordKind::kBandKeys), band),
        [](const KeyedDocument& a, const KeyedDocument& b) { return a.key == b.key; },
        KeyGroup(plan.settings.jaccard_min.has_value(), pairs)));
  } else {
    RecordFileType keys{RecordKind::kTextKeys, sizeof(TextKey), type.digest};
    LLM_RETURN_IF_ERROR(CollectPairs<TextKey>(
        {half, folder + "/merged", keys}, parts.input().Runs(NearFileType(plan.settings, RecordKind::kTextKeys), 0),
        [](const TextKey& a, const TextKey& b) { return a.SameText(b); }, KeyGroup(/*chained=*/false, pairs)));
  }
  LLM_ASSIGN_OR_RETURN(RecordFileWriter out, RecordFileWriter::Create(*resources.files, folder + "/pairs", type));
  std::optional<KeyedDocument> before;
  LLM_RETURN_IF_ERROR(pairs.Finish([&](const KeyedDocument& pair) {
    if (before == pair) return absl::OkStatus();
    before = pair;
    return out.Append(&pair, 1);
  }));
  LLM_RETURN_IF_ERROR(out.Commit({}).status());
  LLM_RETURN_IF_ERROR(resources.files->RemoveFolder(folder + "/sorted"));
  return resources.files->RemoveFolder(folder + "/merged");
}

}  // namespace llmctl::data
