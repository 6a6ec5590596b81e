#include "worker/data/dedup/exact_dedup.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/base/check.h"
#include "common/base/status.h"
#include "worker/data/dedup/input_parts.h"
#include "worker/data/dedup/sorted_records.h"
#include "worker/data/dedup/text_hash.h"

namespace llmctl::data {
namespace {

// Sections of a run are ranges of the keys' first bits.
constexpr int kRangeBits = 4;
static_assert(kRangeTasks == 1 << kRangeBits);

int RangeOf(const TextKey& key) { return static_cast<int>(key.high >> (64 - kRangeBits)); }

std::string SettingsText(const ExactSettings& settings) {
  return absl::StrCat("exact 1; ", TextUnitName(settings.unit), "; at least ", settings.bytes_min, " bytes");
}

PartPlace PlaceOf(const ExactPlan& plan, size_t part) {
  return PlaceOfPart(plan.folder, part, absl::StrCat(SettingsText(plan.settings), "; ", plan.part_digests[part]));
}

absl::StatusOr<InputParts> OpenParts(const ExactPlan& plan, SpillFiles& files) {
  std::vector<PartPlace> places;
  for (size_t part = 0; part < plan.part_digests.size(); ++part) places.push_back(PlaceOf(plan, part));
  return InputParts::Open(files, std::move(places), "exact deduplication");
}

RecordFileType KeyType(const std::string& digest) { return {RecordKind::kTextKeys, sizeof(TextKey), digest}; }

std::string RangeFolder(const ExactPlan& plan, int range) {
  return absl::StrFormat("%s/range-%02d", plan.folder, range);
}

RecordFileType RangeType(const ExactPlan& plan, const InputParts& parts, int range) {
  return {RecordKind::kRepeats, sizeof(Repeat),
          parts.DigestFor(absl::StrCat("range ", range, "; ", SettingsText(plan.settings)))};
}

std::string RepeatFolder(const ExactPlan& plan) { return plan.folder + "/repeats"; }

RecordFileType RepeatType(const ExactPlan& plan, const InputParts& parts) {
  return {RecordKind::kRepeats, sizeof(Repeat), parts.DigestFor("repeats; " + SettingsText(plan.settings))};
}

}  // namespace

absl::Status Validate(const ExactSettings& settings) {
  if (settings.bytes_min >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("exact deduplication: least bytes: 0 or more, found ", settings.bytes_min));
}

class ExactPartWriter {
 public:
  ExactPartWriter(const ExactPlan& plan, size_t part, const TaskResources& resources)
      : settings_(plan.settings),
        place_(PlaceOf(plan, part)),
        resources_(resources),
        capacity_(resources.memory_bytes / sizeof(TextKey)) {}

  absl::Status Start() { return resources_.files->RemoveFolder(place_.folder); }

  absl::Status Add(absl::string_view text) {
    absl::Status status;
    ForEachUnit(text, settings_.unit, [&](uint64_t number, absl::string_view compared) {
      if (settings_.unit != TextUnit::kDocument && compared.empty()) return;
      if (static_cast<int64_t>(compared.size()) < settings_.bytes_min || !status.ok()) return;
      TextHash hash = HashText(compared);
      // In full, as a vector that grows holds twice what it has.
      if (keys_.empty()) keys_.reserve(capacity_);
      keys_.push_back({hash.high, hash.low, counts_.documents, number});
      if (keys_.size() == capacity_) status = Spill();
    });
    LLM_RETURN_IF_ERROR(status);
    counts_.Add(text);
    return absl::OkStatus();
  }

  absl::Status Finish() {
    LLM_RETURN_IF_ERROR(Spill());
    return FinishPart(*resources_.files, place_, files_, counts_);
  }

 private:
  absl::Status Spill() {
    if (keys_.empty()) return absl::OkStatus();
    std::sort(keys_.begin(), keys_.end());
    const uint64_t run = files_.size();
    LLM_ASSIGN_OR_RETURN(RecordFileWriter file,
                         RecordFileWriter::Create(*resources_.files, place_.Path(RecordKind::kTextKeys, run),
                                                  KeyType(place_.digest)));
    auto from = keys_.begin();
    for (int range = 0; range < kRangeTasks; ++range) {
      if (range > 0) file.NextSection();
      auto to = std::find_if(from, keys_.end(), [&](const TextKey& key) { return RangeOf(key) > range; });
      LLM_RETURN_IF_ERROR(file.Append(keys_.data() + (from - keys_.begin()), to - from));
      from = to;
    }
    LLM_ASSIGN_OR_RETURN(uint64_t identity, file.Commit({}));
    files_.push_back({static_cast<uint64_t>(RecordKind::kTextKeys), run, identity});
    keys_.clear();
    return absl::OkStatus();
  }

  const ExactSettings settings_;
  const PartPlace place_;
  const TaskResources resources_;
  const size_t capacity_;
  std::vector<TextKey> keys_;
  std::vector<ListedFile> files_;
  PartCounts counts_;
};

absl::StatusOr<std::unique_ptr<KeyTask>> KeyTask::Open(const ExactPlan& plan, size_t part,
                                                       const TaskResources& resources) {
  CHECK_LT(part, plan.part_digests.size()) << "a part of the plan";
  LLM_RETURN_IF_ERROR(Validate(plan.settings));
  LLM_RETURN_IF_ERROR(Validate(resources));
  // What is no finished part of this plan, for whatever reason, is made again.
  std::unique_ptr<ExactPartWriter> writer;
  if (!PartIsFinished(*resources.files, PlaceOf(plan, part))) {
    writer = std::make_unique<ExactPartWriter>(plan, part, resources);
    LLM_RETURN_IF_ERROR(writer->Start());
  }
  return std::unique_ptr<KeyTask>(new KeyTask(std::move(writer)));
}

KeyTask::KeyTask(std::unique_ptr<ExactPartWriter> writer) : writer_(std::move(writer)) {}
KeyTask::~KeyTask() = default;

absl::Status KeyTask::Add(absl::string_view text) {
  CHECK(!done()) << "a text for a part that is finished";
  return writer_->Add(text);
}

absl::Status KeyTask::Finish() {
  CHECK(!done()) << "the end of a part that is finished";
  LLM_RETURN_IF_ERROR(writer_->Finish());
  writer_ = nullptr;
  return absl::OkStatus();
}

absl::Status RunRangeTask(const ExactPlan& plan, int range, const TaskResources& resources) {
  CHECK(range >= 0 && range < kRangeTasks) << "a range of keys";
  LLM_RETURN_IF_ERROR(Validate(resources));
  LLM_ASSIGN_OR_RETURN(InputParts parts, OpenParts(plan, *resources.files));
  const std::string folder = RangeFolder(plan, range);
  const RecordFileType type = RangeType(plan, parts, range);
  if (RecordFile::Open(*resources.files, folder + "/repeats", type).ok()) return absl::OkStatus();
  LLM_RETURN_IF_ERROR(resources.files->RemoveFolder(folder));

  // Half of the memory for the runs that are read, half for the repeats that come of them.
  const TaskResources half{resources.files, resources.memory_bytes / 2};
  ExternalSorter<Repeat> repeats({half, folder + "/sorted", type});
  std::optional<TextKey> first;
  uint64_t units = 0;
  LLM_RETURN_IF_ERROR(MergeRuns<TextKey>(
      {half, folder + "/merged", KeyType(type.digest)}, parts.Runs(KeyType(""), range), [&](const TextKey& key) {
        ++units;
        if (first && first->SameText(key)) return repeats.Add({key.document, key.unit, first->document, first->unit});
        first = key;
        return absl::OkStatus();
      }));
  LLM_ASSIGN_OR_RETURN(RecordFileWriter out, RecordFileWriter::Create(*resources.files, folder + "/repeats", type));
  LLM_RETURN_IF_ERROR(repeats.Finish([&](const Repeat& repeat) { return out.Append(&repeat, 1); }));
  LLM_RETURN_IF_ERROR(out.Commit({units}).status());
  LLM_RETURN_IF_ERROR(resources.files->RemoveFolder(folder + "/sorted"));
  return resources.files->RemoveFolder(folder + "/merged");
}

absl::StatusOr<ExactSummary> RunRepeatTask(const ExactPlan& plan, const TaskResources& resources) {
  LLM_RETURN_IF_ERROR(Validate(resources));
  LLM_ASSIGN_OR_RETURN(InputParts parts, OpenParts(plan, *resources.files));
  const std::string folder = RepeatFolder(plan);
  const RecordFileType type = RepeatType(plan, parts);
  if (absl::StatusOr<RecordFile> done = RecordFile::Open(*resources.files, folder + "/repeats", type); done.ok()) {
    return ExactSummary{done->notes()[0], done->notes()[1], done->notes()[2]};
  }
  LLM_RETURN_IF_ERROR(resources.files->RemoveFolder(folder));
  ExactSummary summary;
  summary.documents = parts.documents();
  std::vector<SortedRun> runs;
  for (int range = 0; range < kRangeTasks; ++range) {
    runs.push_back({RangeFolder(plan, range) + "/repeats", RangeType(plan, parts, range), 0, 0, 0});
    absl::StatusOr<RecordFile> file = OpenRun(*resources.files, runs.back());
    if (absl::IsNotFound(file.status())) {
      return absl::FailedPreconditionError(absl::StrCat("exact deduplication: range task ", range, " of ", kRangeTasks,
                                                        " is not finished; run it first (", file.status().message(),
                                                        ")"));
    }
    LLM_RETURN_IF_ERROR(file.status());
    summary.units += file->notes()[0];
    summary.repeats += file->records();
  }
  LLM_ASSIGN_OR_RETURN(RecordFileWriter out, RecordFileWriter::Create(*resources.files, folder + "/repeats", type));
  LLM_RETURN_IF_ERROR(MergeRuns<Repeat>({resources, folder + "/merged", type}, std::move(runs),
                                        [&](const Repeat& repeat) { return out.Append(&repeat, 1); }));
  LLM_RETURN_IF_ERROR(out.Commit({summary.documents, summary.units, summary.repeats}).status());
  LLM_RETURN_IF_ERROR(resources.files->RemoveFolder(folder + "/merged"));
  return summary;
}

absl::StatusOr<RepeatReader> RepeatReader::Open(const ExactPlan& plan, SpillFiles& files) {
  LLM_ASSIGN_OR_RETURN(InputParts parts, OpenParts(plan, files));
  LLM_ASSIGN_OR_RETURN(RecordFile file,
                       RecordFile::Open(files, RepeatFolder(plan) + "/repeats", RepeatType(plan, parts)));
  RepeatReader reader(std::move(file), parts.first_documents());
  LLM_RETURN_IF_ERROR(reader.repeats_.Verify());
  return reader;
}

RepeatReader::RepeatReader(RecordFile file, std::vector<uint64_t> first_documents)
    : repeats_(std::move(file)), first_documents_(std::move(first_documents)) {
  const RecordNotes& notes = repeats_.file().notes();
  summary_ = {notes[0], notes[1], notes[2]};
}

absl::Status RepeatReader::Find(uint64_t document, std::vector<Repeat>& out) { return repeats_.Find(document, out); }

}  // namespace llmctl::data
