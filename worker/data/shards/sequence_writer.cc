#include "worker/data/shards/sequence_writer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/file.h"
#include "common/base/status.h"

namespace llmctl::data {
namespace {

template <typename T>
absl::string_view BytesOf(absl::Span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<SequenceWriter>> SequenceWriter::Create(const Options& options) {
  std::string stem = absl::StrCat(options.directory, "/", options.split);
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> bin, OutputFile::Create(stem + ".bin"));
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<IndexWriter> idx,
                       IndexWriter::Create(stem + ".idx", TokenTypeFor(options.vocabulary_size), options.packed));
  return std::unique_ptr<SequenceWriter>(new SequenceWriter(options, std::move(bin), std::move(idx)));
}

SequenceWriter::SequenceWriter(Options options, std::unique_ptr<OutputFile> bin, std::unique_ptr<IndexWriter> idx)
    : options_(std::move(options)),
      type_(TokenTypeFor(options_.vocabulary_size)),
      bin_(std::move(bin)),
      idx_(std::move(idx)) {}

absl::Status SequenceWriter::Check(absl::Span<const int32_t> tokens) const {
  if (tokens.empty()) return absl::InvalidArgumentError("a document needs at least one token");
  if (tokens.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return absl::InvalidArgumentError(absl::StrCat("a document of ", tokens.size(), " tokens does not fit the index"));
  }
  auto outside = std::find_if(tokens.begin(), tokens.end(),
                              [this](int32_t token) { return token < 0 || token >= options_.vocabulary_size; });
  if (outside == tokens.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("token ", *outside, " is not in the vocabulary of ", options_.vocabulary_size));
}

absl::Status SequenceWriter::AddSequence(absl::Span<const int32_t> tokens, bool continues) {
  absl::string_view bytes = BytesOf(tokens);
  if (type_ == TokenType::kUint16) {
    narrow_.assign(tokens.begin(), tokens.end());
    bytes = BytesOf(absl::MakeConstSpan(narrow_));
  }
  checksum_.Add(bytes.data(), bytes.size());
  LLM_RETURN_IF_ERROR(bin_->Append(bytes));
  tokens_ += tokens.size();
  return idx_->AddSequence(static_cast<int32_t>(tokens.size()), continues);
}

absl::Status SequenceWriter::BeginGroup(const std::string& name, int64_t at) {
  if (groups_.empty() && documents_ > 0) {
    return absl::InvalidArgumentError(absl::StrCat("group ", name, " begins after documents that are in no group"));
  }
  for (const GroupInfo& group : groups_) {
    if (group.name == name) return absl::InvalidArgumentError(absl::StrCat("group ", name, " begins twice"));
  }
  if (!groups_.empty()) groups_.back().end = at;
  groups_.push_back({.name = name, .begin = at});
  return absl::OkStatus();
}

void SequenceWriter::CountDocument(int64_t tokens) {
  ++documents_;
  if (groups_.empty()) return;
  ++groups_.back().documents;
  groups_.back().tokens += tokens;
}

absl::StatusOr<SplitInfo> SequenceWriter::Finish(int64_t end) {
  SplitInfo info{.name = options_.split, .documents = documents_, .tokens = tokens_, .bin_checksum = checksum_.Hex()};
  LLM_ASSIGN_OR_RETURN(info.idx_checksum, idx_->Finish());
  // The .idx comes last: a .bin without one is refused by every reader.
  LLM_RETURN_IF_ERROR(bin_->Commit());
  LLM_RETURN_IF_ERROR(idx_->Commit());
  LLM_RETURN_IF_ERROR(SyncDirectory(options_.directory));
  if (!groups_.empty()) groups_.back().end = end;
  info.groups = groups_;
  for (GroupInfo& group : info.groups) {
    group.weight = tokens_ == 0 ? 1.0 / static_cast<double>(groups_.size())
                                : static_cast<double>(group.tokens) / static_cast<double>(tokens_);
  }
  return info;
}

}  // namespace llmctl::data
