#include "worker/data/prepare/dataset_output.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <iterator>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/json/strict_json.h"
#include "worker/data/prepare/prepare.h"

namespace llmctl::data {
namespace {

constexpr const char* kManifestName = "manifest.json";
constexpr const char* kShardNames[] = {"train.bin", "train.idx", "validation.bin", "validation.idx"};

absl::Status Remove(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("remove ", path));
}

absl::Status RemoveShards(const std::string& directory) {
  for (const char* name : kShardNames) LLM_RETURN_IF_ERROR(Remove(absl::StrCat(directory, "/", name)));
  return absl::OkStatus();
}

absl::Status RefuseExisting(const std::string& directory) {
  std::vector<std::string> names(std::begin(kShardNames), std::end(kShardNames));
  names.push_back(kManifestName);
  for (const std::string& name : names) {
    if (::access(absl::StrCat(directory, "/", name).c_str(), F_OK) != 0) continue;
    return absl::AlreadyExistsError(
        absl::StrCat("output ", directory, " holds ", name, " already; choose another folder or pass --force"));
  }
  return absl::OkStatus();
}

absl::Status ClearOutput(const std::string& directory, bool force) {
  LLM_RETURN_IF_ERROR(MakeDirectories(directory));
  if (!force) return RefuseExisting(directory);
  // The old manifest must be gone for good before its shards are.
  LLM_RETURN_IF_ERROR(Remove(absl::StrCat(directory, "/", kManifestName)));
  LLM_RETURN_IF_ERROR(SyncDirectory(directory));
  return RemoveShards(directory);
}

bool IsValidation(const ContentHash& hash, double fraction) {
  return std::ldexp(static_cast<double>(hash.low), -64) < fraction;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DatasetOutput>> DatasetOutput::Create(const Options& options,
                                                                     const std::vector<InputFile>& files) {
  std::unique_ptr<DatasetOutput> out(new DatasetOutput(options, files));
  LLM_ASSIGN_OR_RETURN(out->tokenizer_, MakeTokenizer(options.tokenizer));
  out->encoder_ = out->tokenizer_->MakeEncoder();
  LLM_RETURN_IF_ERROR(ClearOutput(options.directory, options.force));
  int vocabulary = out->tokenizer_->vocabulary_size();
  LLM_ASSIGN_OR_RETURN(out->train_, ShardWriter::Create(options.directory, "train", vocabulary));
  LLM_ASSIGN_OR_RETURN(out->validation_, ShardWriter::Create(options.directory, "validation", vocabulary));
  out->rejects_.open(absl::StrCat(options.directory, "/", kRejectsName), std::ios::binary | std::ios::trunc);
  if (!out->rejects_) return ErrnoStatus(errno, absl::StrCat("create ", options.directory, "/", kRejectsName));
  out->train_counts_.resize(vocabulary);
  return out;
}

absl::Status DatasetOutput::Add(const ChunkDocuments& chunk) {
  // Documents and rejects are each in input order: merged by place, so that the rejects file is too.
  size_t next = 0;
  for (const Document& document : chunk.documents) {
    for (; next < chunk.rejects.size(); ++next) {
      const Reject& reject = chunk.rejects[next];
      if (reject.place.file == document.place.file && reject.place.byte > document.place.byte) break;
      LLM_RETURN_IF_ERROR(AddReject(reject.place, ReasonName(reject.reason), reject.detail));
    }
    LLM_RETURN_IF_ERROR(AddDocument(document));
  }
  for (; next < chunk.rejects.size(); ++next) {
    const Reject& reject = chunk.rejects[next];
    LLM_RETURN_IF_ERROR(AddReject(reject.place, ReasonName(reject.reason), reject.detail));
  }
  return absl::OkStatus();
}

absl::Status DatasetOutput::AddDocument(const Document& document) {
  if (!seen_.insert(document.hash).second) return AddReject(document.place, "duplicate", "");
  tokens_.clear();
  encoder_->Encode(document.text, tokens_);
  tokens_.push_back(tokenizer_->end_of_document());
  ++documents_;
  if (IsValidation(document.hash, options_.validation_fraction)) return validation_->AddDocument(tokens_);
  for (int32_t token : tokens_) ++train_counts_[token];
  return train_->AddDocument(tokens_);
}

absl::Status DatasetOutput::AddReject(const Place& place, absl::string_view reason,
                                      const std::string& detail) {
  ++dropped_[std::string(reason)];
  nlohmann::json line = {{"file", files_[place.file].path},
                         {"line", place.line},
                         {"byte", place.byte},
                         {"reason", std::string(reason)}};
  if (!detail.empty()) line["detail"] = detail;
  rejects_ << JsonText(line, /*indented=*/false) << '\n';
  if (rejects_) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("write ", options_.directory, "/", kRejectsName));
}

absl::Status DatasetOutput::Abandon() {
  train_.reset();
  validation_.reset();
  return RemoveShards(options_.directory);
}

absl::StatusOr<DatasetManifest> DatasetOutput::Finish() {
  DatasetManifest manifest;
  manifest.tokenizer = options_.tokenizer;
  manifest.vocabulary_size = tokenizer_->vocabulary_size();
  manifest.end_of_document = tokenizer_->end_of_document();
  manifest.unigram_entropy = UnigramEntropy(train_counts_);
  for (ShardWriter* writer : {train_.get(), validation_.get()}) {
    LLM_ASSIGN_OR_RETURN(SplitInfo split, writer->Finish());
    manifest.splits.push_back(std::move(split));
  }
  rejects_.close();
  if (!rejects_) return ErrnoStatus(errno, absl::StrCat("write ", options_.directory, "/", kRejectsName));
  return manifest;
}

}  // namespace llmctl::data
