#include "worker/data/pipeline/encode_stage.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include "common/base/status.h"
#include "worker/data/dedup/text_hash.h"
#include "worker/data/pipeline/survivors.h"
#include "worker/data/pipeline/wire.h"

namespace llmctl::data {
namespace {

constexpr absl::string_view kIndexEnding = "index";
constexpr absl::string_view kLossesEnding = "losses";

std::string TokensEnding(const std::string& group) {
  return absl::StrCat(absl::StrReplaceAll(group, {{"/", "."}}), ".tokens");
}

// What is mixed together with the documents of this source and language.
std::string GroupOf(const contract::CorpusConfig& config, const std::string& source, absl::string_view language) {
  bool by_language = config.mix && config.mix->by == "language" && !language.empty();
  return by_language ? absl::StrCat(source, "/", language) : source;
}

std::string EncodeIndex(const EncodedSegment& segment) {
  std::string out;
  PutVarint(segment.groups.size(), out);
  for (const auto& [name, group] : segment.groups) {
    PutBytes(name, out);
    PutVarint(group.documents, out);
    PutVarint(group.tokens, out);
    for (int64_t count : group.lengths.counts()) PutVarint(count, out);
  }
  segment.tally.Encode(out);
  return out;
}

absl::StatusOr<EncodedSegment> DecodeIndex(absl::string_view bytes) {
  WireReader wire(bytes);
  EncodedSegment segment;
  for (uint64_t left = wire.Varint(); left > 0 && wire.ok(); --left) {
    GroupTokens& group = segment.groups[std::string(wire.Bytes())];
    group.documents = static_cast<int64_t>(wire.Varint());
    group.tokens = static_cast<int64_t>(wire.Varint());
    for (int64_t& count : group.lengths.counts()) count = static_cast<int64_t>(wire.Varint());
  }
  LLM_RETURN_IF_ERROR(segment.tally.Decode(wire));
  return segment;
}

std::string ReasonOf(const Loss& loss, const contract::CorpusConfig& config) {
  switch (loss.kind) {
    case Loss::Kind::kPerplexity: return std::string(ReasonName(loss.perplexity.reason));
    case Loss::Kind::kExact: return absl::StrCat("exact_duplicate.", config.exact_dedup->units[loss.pass]);
    case Loss::Kind::kNear: return "near_duplicate";
  }
  return "";
}

void EncodeLoss(uint64_t index, const Loss& loss, std::string& out) {
  out.clear();
  PutVarint(index, out);
  PutVarint(static_cast<uint64_t>(loss.kind), out);
  PutVarint(loss.pass + 1, out);
  PutVarint(loss.number, out);
  PutVarint(loss.kept, out);
  PutVarint(loss.match, out);
  PutDouble(loss.kept_jaccard, out);
  PutDouble(loss.match_jaccard, out);
  PutVarint(static_cast<uint64_t>(loss.perplexity.bucket), out);
  PutDouble(loss.perplexity.measured, out);
  PutDouble(loss.perplexity.threshold, out);
}

absl::StatusOr<LossRecord> DecodeLoss(absl::string_view record) {
  WireReader wire(record);
  LossRecord out;
  Loss& loss = out.loss;
  out.index = wire.Varint();
  uint64_t kind = wire.Varint();
  loss.kind = static_cast<Loss::Kind>(kind);
  loss.pass = static_cast<int>(wire.Varint()) - 1;
  loss.number = wire.Varint();
  loss.kept = wire.Varint();
  loss.match = wire.Varint();
  loss.kept_jaccard = wire.Double();
  loss.match_jaccard = wire.Double();
  uint64_t bucket = wire.Varint();
  loss.perplexity.bucket = static_cast<PerplexityBucket>(bucket);
  loss.perplexity.measured = wire.Double();
  loss.perplexity.threshold = wire.Double();
  bool known = kind <= static_cast<uint64_t>(Loss::Kind::kNear) &&
               bucket <= static_cast<uint64_t>(PerplexityBucket::kTail);
  if (wire.ok() && known) return out;
  return absl::DataLossError("a record of the audit says nothing of a lost document");
}

class EncodeWorker : public StageWorker {
 public:
  EncodeWorker(const Workspace& workspace, const std::vector<Segment>& segments, const Tokenizer& tokenizer,
               std::unique_ptr<Survivors> survivors, StageProgress& progress)
      : workspace_(workspace),
        segments_(segments),
        end_(tokenizer.end_of_document()),
        encoder_(tokenizer.MakeEncoder()),
        survivors_(std::move(survivors)),
        progress_(progress) {}

  absl::Status Run(int task) override {
    const Segment& segment = segments_[task];
    const contract::CorpusConfig& config = workspace_.plan().config;
    if (IsFinished(segment)) {
      progress_.done += static_cast<int64_t>(segment.bytes);
      return absl::OkStatus();
    }
    EncodedSegment out;
    writers_.clear();
    LLM_ASSIGN_OR_RETURN(std::unique_ptr<BlockFileWriter> losses, Create(segment, kLossesEnding));
    LLM_RETURN_IF_ERROR(survivors_->ForEach(
        task, [&](uint64_t index, const DocumentRecord& document, std::string& text, const Loss* loss) -> absl::Status {
          progress_.done += static_cast<int64_t>(document.text.size());
          const std::string& source = config.sources[workspace_.plan().files[document.place.file].source].name;
          Tally::Group& counts = out.tally.GroupOf(source, document.language);
          if (loss != nullptr) {
            counts.dropped[ReasonOf(*loss, config)].Add(static_cast<int64_t>(document.text.size()));
            EncodeLoss(index, *loss, record_);
            return losses->Append(record_);
          }
          counts.kept.Add(static_cast<int64_t>(text.size()));
          counts.kept_bytes.Add(static_cast<int64_t>(text.size()));
          return Write(segment, GroupOf(config, source, document.language), text, out.groups);
        }));
    for (auto& [group, writer] : writers_) LLM_RETURN_IF_ERROR(writer->Commit("").status());
    LLM_RETURN_IF_ERROR(losses->Commit("").status());
    LLM_ASSIGN_OR_RETURN(std::unique_ptr<BlockFileWriter> index, Create(segment, kIndexEnding));
    return index->Commit(EncodeIndex(out)).status();
  }

 private:
  bool IsFinished(const Segment& segment) const {
    absl::StatusOr<EncodedSegment> encoded = ReadEncodedSegment(workspace_, segment);
    if (!encoded.ok() || !ReadLosses(workspace_, segment).ok()) return false;
    return std::all_of(encoded->groups.begin(), encoded->groups.end(), [&](const auto& group) {
      return TokenReader::Open(workspace_, segment, group.first).ok();
    });
  }

  absl::StatusOr<std::unique_ptr<BlockFileWriter>> Create(const Segment& segment, absl::string_view ending) {
    return BlockFileWriter::Create(workspace_.quick_files(), workspace_.TokensPath(segment, ending),
                                   workspace_.plan().encode_digest);
  }

  absl::Status Write(const Segment& segment, const std::string& group, const std::string& text,
                     std::map<std::string, GroupTokens>& groups) {
    std::unique_ptr<BlockFileWriter>& writer = writers_[group];
    if (writer == nullptr) {
      LLM_ASSIGN_OR_RETURN(writer, Create(segment, TokensEnding(group)));
    }
    tokens_.clear();
    encoder_->Encode(text, tokens_);
    tokens_.push_back(end_);
    GroupTokens& counts = groups[group];
    ++counts.documents;
    counts.tokens += static_cast<int64_t>(tokens_.size());
    counts.lengths.Add(static_cast<int64_t>(tokens_.size()));
    record_.clear();
    PutFixed64(HashText(text).low, record_);
    record_.append(reinterpret_cast<const char*>(tokens_.data()), tokens_.size() * sizeof(tokens_[0]));
    return writer->Append(record_);
  }

  const Workspace& workspace_;
  const std::vector<Segment>& segments_;
  const int32_t end_;
  std::unique_ptr<TextEncoder> encoder_;
  std::unique_ptr<Survivors> survivors_;
  StageProgress& progress_;
  std::map<std::string, std::unique_ptr<BlockFileWriter>> writers_;  // by group
  std::vector<int32_t> tokens_;
  std::string record_;
};

class EncodeStage : public Stage {
 public:
  EncodeStage(const Workspace& workspace, std::vector<Segment> segments, const Tokenizer& tokenizer)
      : workspace_(workspace), segments_(std::move(segments)), tokenizer_(tokenizer) {}

  int tasks() const override { return static_cast<int>(segments_.size()); }
  int64_t amount() const override { return TextBytes(segments_); }
  absl::StatusOr<std::unique_ptr<StageWorker>> MakeWorker(int, int64_t, StageProgress& progress) override {
    LLM_ASSIGN_OR_RETURN(std::unique_ptr<Survivors> survivors,
                         Survivors::Open(workspace_, segments_, DedupPasses(workspace_.plan().config)));
    return std::make_unique<EncodeWorker>(workspace_, segments_, tokenizer_, std::move(survivors), progress);
  }

 private:
  const Workspace& workspace_;
  const std::vector<Segment> segments_;
  const Tokenizer& tokenizer_;
};

}  // namespace

absl::StatusOr<EncodedSegment> ReadEncodedSegment(const Workspace& workspace, const Segment& segment) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<BlockFileReader> index,
                       BlockFileReader::Open(workspace.quick_files(), workspace.TokensPath(segment, kIndexEnding),
                                             workspace.plan().encode_digest));
  return DecodeIndex(index->footer());
}

absl::StatusOr<std::vector<LossRecord>> ReadLosses(const Workspace& workspace, const Segment& segment) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<BlockFileReader> file,
                       BlockFileReader::Open(workspace.quick_files(), workspace.TokensPath(segment, kLossesEnding),
                                             workspace.plan().encode_digest));
  std::vector<LossRecord> out;
  absl::string_view record;
  while (true) {
    LLM_ASSIGN_OR_RETURN(bool more, file->Next(record));
    if (!more) return out;
    LLM_ASSIGN_OR_RETURN(LossRecord loss, DecodeLoss(record));
    out.push_back(std::move(loss));
  }
}

absl::StatusOr<TokenReader> TokenReader::Open(const Workspace& workspace, const Segment& segment,
                                              const std::string& group) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<BlockFileReader> file,
                       BlockFileReader::Open(workspace.quick_files(),
                                             workspace.TokensPath(segment, TokensEnding(group)),
                                             workspace.plan().encode_digest));
  return TokenReader(std::move(file));
}

absl::StatusOr<bool> TokenReader::Next(uint64_t& hash, std::vector<int32_t>& tokens) {
  absl::string_view record;
  LLM_ASSIGN_OR_RETURN(bool more, file_->Next(record));
  if (!more) return false;
  WireReader wire(record);
  hash = wire.Fixed64();
  if (!wire.ok() || wire.rest().size() % sizeof(int32_t) != 0) {
    return absl::DataLossError("a record of the work folder holds no tokens");
  }
  tokens.resize(wire.rest().size() / sizeof(int32_t));
  std::memcpy(tokens.data(), wire.rest().data(), wire.rest().size());
  return true;
}

std::unique_ptr<Stage> MakeEncodeStage(const Workspace& workspace, std::vector<Segment> segments,
                                       const Tokenizer& tokenizer) {
  return std::make_unique<EncodeStage>(workspace, std::move(segments), tokenizer);
}

}  // namespace llmctl::data
