#include "worker/data/dedup/near_part_writer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/status.h"
#include "worker/data/dedup/near_dedup.h"
#include "worker/data/dedup/near_parts.h"
#include "worker/data/dedup/sketch.h"
#include "worker/data/dedup/text_hash.h"

namespace llmctl::data {
namespace {

// Documents whose keys are held at once; short ones get the share that is left.
size_t RunDocuments(const NearPlan& plan, const TaskResources& resources) {
  uint64_t per_document = plan.settings.bands * sizeof(KeyedDocument);
  return std::max<uint64_t>(1, (resources.memory_bytes - resources.memory_bytes / 8) / per_document);
}

}  // namespace

NearPartWriter::NearPartWriter(const NearPlan& plan, size_t part, const TaskResources& resources)
    : settings_(plan.settings),
      place_(PlaceOfNearPart(plan, part)),
      resources_(resources),
      run_documents_(RunDocuments(plan, resources)),
      keys_(plan.settings.bands) {}

absl::StatusOr<RecordFileWriter> NearPartWriter::CreateFile(RecordKind kind, uint64_t run) {
  RecordFileType type = NearFileType(settings_, kind);
  type.digest = place_.digest;
  return RecordFileWriter::Create(*resources_.files, place_.Path(kind, run), type);
}

absl::Status NearPartWriter::Start() {
  LLM_RETURN_IF_ERROR(resources_.files->RemoveFolder(place_.folder));
  sketch_.resize(SketchBytes(settings_.bands * settings_.rows));
  LLM_ASSIGN_OR_RETURN(sketches_, CreateFile(RecordKind::kSketches, 0));
  if (!settings_.jaccard_min) return absl::OkStatus();
  LLM_ASSIGN_OR_RETURN(shingles_, CreateFile(RecordKind::kShingleSets, 0));
  LLM_ASSIGN_OR_RETURN(starts_, CreateFile(RecordKind::kShingleStarts, 0));
  return absl::OkStatus();
}

absl::Status NearPartWriter::Add(const Signer& signer, absl::string_view text, Signature& signature) {
  signer.Sign(text, signature);
  const size_t hashes = settings_.bands * settings_.rows;
  WriteSketch(absl::MakeSpan(signature.least).first(hashes), signature.shingles, absl::MakeSpan(sketch_));
  LLM_RETURN_IF_ERROR(sketches_->Append(sketch_.data(), 1));
  if (shingles_) LLM_RETURN_IF_ERROR(AddSet(signature));
  LLM_RETURN_IF_ERROR(AddKeys(signer, text, signature));
  counts_.Add(text);
  return absl::OkStatus();
}

absl::Status NearPartWriter::AddKeys(const Signer& signer, absl::string_view text, const Signature& signature) {
  if (!signature.full) {
    ++counts_.without_signature;
    TextHash hash = HashText(text);
    short_keys_.reserve(resources_.memory_bytes / 8 / sizeof(TextKey));
    short_keys_.push_back({hash.high, hash.low, counts_.documents, 0});
    return short_keys_.size() == resources_.memory_bytes / 8 / sizeof(TextKey) ? SpillShort() : absl::OkStatus();
  }
  if (keys_[0].empty()) {
    // In full, as vectors that grow hold twice what they have.
    for (std::vector<KeyedDocument>& keys : keys_) keys.reserve(run_documents_);
  }
  for (int band = 0; band < settings_.bands; ++band) {
    keys_[band].push_back({signer.BandKey(signature, band), counts_.documents});
  }
  return keys_[0].size() == run_documents_ ? Spill() : absl::OkStatus();
}

absl::Status NearPartWriter::AddSet(Signature& signature) {
  absl::Span<const uint32_t> sorted = signature.set.Sorted();
  // Sets are read singly: the first number is a checksum.
  uint32_t checksum = static_cast<uint32_t>(
      Fingerprint64({reinterpret_cast<const char*>(sorted.data()), sorted.size() * sizeof(uint32_t)}));
  LLM_RETURN_IF_ERROR(starts_->Append(&shingle_count_, 1));
  LLM_RETURN_IF_ERROR(shingles_->Append(&checksum, 1));
  LLM_RETURN_IF_ERROR(shingles_->Append(sorted.data(), sorted.size()));
  shingle_count_ += 1 + sorted.size();
  return absl::OkStatus();
}

absl::Status NearPartWriter::Spill() {
  if (keys_[0].empty()) return absl::OkStatus();
  LLM_ASSIGN_OR_RETURN(RecordFileWriter file, CreateFile(RecordKind::kBandKeys, key_runs_));
  for (int band = 0; band < settings_.bands; ++band) {
    if (band > 0) file.NextSection();
    std::sort(keys_[band].begin(), keys_[band].end());
    LLM_RETURN_IF_ERROR(file.Append(keys_[band].data(), keys_[band].size()));
    keys_[band].clear();
  }
  return List(RecordKind::kBandKeys, key_runs_++, file);
}

absl::Status NearPartWriter::SpillShort() {
  if (short_keys_.empty()) return absl::OkStatus();
  LLM_ASSIGN_OR_RETURN(RecordFileWriter file, CreateFile(RecordKind::kTextKeys, short_runs_));
  std::sort(short_keys_.begin(), short_keys_.end());
  LLM_RETURN_IF_ERROR(file.Append(short_keys_.data(), short_keys_.size()));
  short_keys_.clear();
  return List(RecordKind::kTextKeys, short_runs_++, file);
}

absl::Status NearPartWriter::List(RecordKind kind, uint64_t run, RecordFileWriter& file) {
  LLM_ASSIGN_OR_RETURN(uint64_t identity, file.Commit({}));
  files_.push_back({static_cast<uint64_t>(kind), run, identity});
  return absl::OkStatus();
}

absl::Status NearPartWriter::Finish() {
  LLM_RETURN_IF_ERROR(Spill());
  LLM_RETURN_IF_ERROR(SpillShort());
  LLM_RETURN_IF_ERROR(List(RecordKind::kSketches, 0, *sketches_));
  if (shingles_) {
    LLM_RETURN_IF_ERROR(starts_->Append(&shingle_count_, 1));  // where the last one ends
    LLM_RETURN_IF_ERROR(List(RecordKind::kShingleSets, 0, *shingles_));
    LLM_RETURN_IF_ERROR(List(RecordKind::kShingleStarts, 0, *starts_));
  }
  return FinishPart(*resources_.files, place_, files_, counts_);
}

absl::StatusOr<std::unique_ptr<SignatureTask>> SignatureTask::Open(const NearPlan& plan, size_t part,
                                                                   const Signer& signer,
                                                                   const TaskResources& resources) {
  CHECK_LT(part, plan.part_digests.size()) << "a part of the plan";
  CHECK_EQ(SignatureText(plan.settings), SignatureText(signer.settings())) << "a signer of the plan";
  LLM_RETURN_IF_ERROR(Validate(resources));
  // What is no finished part of this plan, for whatever reason, is made again.
  std::unique_ptr<NearPartWriter> writer;
  if (!PartIsFinished(*resources.files, PlaceOfNearPart(plan, part))) {
    writer = std::make_unique<NearPartWriter>(plan, part, resources);
    LLM_RETURN_IF_ERROR(writer->Start());
  }
  return std::unique_ptr<SignatureTask>(new SignatureTask(signer, std::move(writer)));
}

SignatureTask::SignatureTask(const Signer& signer, std::unique_ptr<NearPartWriter> writer)
    : signer_(signer), writer_(std::move(writer)) {}
SignatureTask::~SignatureTask() = default;

absl::Status SignatureTask::Add(absl::string_view text) {
  CHECK(!done()) << "a text for a part that is finished";
  return writer_->Add(signer_, text, signature_);
}

absl::Status SignatureTask::Finish() {
  CHECK(!done()) << "the end of a part that is finished";
  LLM_RETURN_IF_ERROR(writer_->Finish());
  writer_ = nullptr;
  return absl::OkStatus();
}

}  // namespace llmctl::data
