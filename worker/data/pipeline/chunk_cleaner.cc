#include "worker/data/pipeline/chunk_cleaner.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/status.h"
#include "worker/data/pipeline/document_record.h"
#include "worker/data/pipeline/settings.h"
#include "worker/data/pipeline/wire.h"

namespace llmctl::data {
namespace {

constexpr size_t kSampleBytes = 300;

// The beginning of a text, not cut inside a character.
std::string Beginning(absl::string_view text) {
  size_t end = std::min(text.size(), kSampleBytes);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end));
}

void CountRepairs(const Repairs& repairs, Tally& tally) {
  tally.Add("invalid UTF-8 replaced", repairs.invalid_utf8);
  tally.Add("lone surrogates replaced", repairs.lone_surrogates);
  tally.Add("byte order marks", repairs.byte_order_marks);
  tally.Add("documents split for their size", repairs.giants_split);
  tally.Add("ids that cannot be used", repairs.unusable_ids);
  tally.Add("files with bytes after their compressed end", repairs.trailing_garbage);
  tally.Add("files not compressed as their names say", repairs.misnamed_files);
  tally.Add("control characters dropped", repairs.control_characters);
  tally.Add("carriage returns", repairs.carriage_returns);
  tally.Add("documents normalised", repairs.normalized_documents);
  tally.Add("documents with white space tidied", repairs.trimmed_documents);
}

DocumentPlace PlaceOf(const Place& place) { return {.file = place.file, .line = place.line, .byte = place.byte}; }

}  // namespace

absl::StatusOr<ReadSettings> ReadSettingsOf(const contract::CorpusConfig& config, int source) {
  ReadSettings settings;
  settings.text_field = config.sources[source].text_field;
  settings.id_field = config.sources[source].id_field;
  bool reject = config.read.invalid_utf8 == "reject";
  settings.invalid_utf8 = reject ? InvalidUtf8Policy::kReject : InvalidUtf8Policy::kReplace;
  settings.lone_surrogates = reject ? LoneSurrogatePolicy::kReject : LoneSurrogatePolicy::kReplace;
  settings.giant = config.read.giant == "reject" ? GiantPolicy::kReject : GiantPolicy::kSplit;
  settings.truncated = config.read.truncated == "allow" ? TruncatedPolicy::kAllow : TruncatedPolicy::kRefuse;
  LLM_ASSIGN_OR_RETURN(settings.document_bytes_max, ParseByteSize(config.read.document_bytes_max));
  LLM_RETURN_IF_ERROR(Annotate(settings.Validate(), "source ", config.sources[source].name));
  return settings;
}

NormalizeSettings NormalizeSettingsOf(const contract::NormalizeConfig& config) {
  NormalizeSettings settings;
  settings.form = config.form == "NFKC" ? UnicodeForm::kNfkc
                  : config.form == "NFC" ? UnicodeForm::kNfc
                                         : UnicodeForm::kNone;
  settings.controls = config.controls == "keep" ? ControlPolicy::kKeep : ControlPolicy::kRemove;
  settings.whitespace = config.whitespace == "collapse" ? WhitespacePolicy::kCollapse
                        : config.whitespace == "trim"   ? WhitespacePolicy::kTrim
                                                        : WhitespacePolicy::kKeep;
  return settings;
}

ChunkCleaner::ChunkCleaner(const CorpusPlan& plan, const CleaningRules& rules)
    : plan_(plan),
      normalizer_(NormalizeSettingsOf(plan.config.normalize)),
      cleaner_(rules),
      parsers_(plan.config.sources.size()) {}

ChunkParser& ChunkCleaner::ParserOf(int source) {
  if (parsers_[source] == nullptr) {
    absl::StatusOr<ReadSettings> settings = ReadSettingsOf(plan_.config, source);
    CHECK(settings.ok()) << settings.status();  // the stage has checked them
    parsers_[source] = std::make_unique<ChunkParser>(*settings);
  }
  return *parsers_[source];
}

CleanedChunk ChunkCleaner::Run(Chunk& chunk) {
  CleanedChunk out;
  out.end = chunk.end;
  int source_index = plan_.files[chunk.file].source;
  const std::string& source = plan_.config.sources[source_index].name;
  ParserOf(source_index).Parse(chunk, parsed_);
  out.file_bytes = parsed_.file_bytes;
  // Documents and rejects are each in input order; verdicts are in the order of both.
  size_t next = 0;
  for (const ParsedDocument& document : parsed_.documents) {
    while (next < parsed_.rejects.size() && parsed_.rejects[next].place.byte <= document.place.byte) {
      AddFault(parsed_.rejects[next++], source, out);
    }
    out.status = AddDocument(document, source, out);
    if (!out.status.ok()) return out;
  }
  while (next < parsed_.rejects.size()) AddFault(parsed_.rejects[next++], source, out);
  CountRepairs(parsed_.repairs, out.tally);
  out.tally.Add("records", parsed_.records);
  out.tally.Add("blank lines", parsed_.blank_lines);
  return out;
}

absl::Status ChunkCleaner::AddDocument(const ParsedDocument& document, const std::string& source, CleanedChunk& out) {
  absl::string_view text = normalizer_.Normalize(document.text, normalized_, parsed_.repairs);
  text_.assign(text.data(), text.size());
  id_.assign(document.id.data(), document.id.size());
  if (document.part > 0 && !id_.empty()) absl::StrAppend(&id_, "#", document.part);
  out.text_bytes += static_cast<int64_t>(text_.size());
  VerdictRecord verdict{.place = PlaceOf(document.place), .id = id_, .bytes = text_.size()};
  if (HasContent(text_)) {
    LLM_RETURN_IF_ERROR(cleaner_.Run(text_, cleaned_));
  } else {  // nothing but what was taken out of it
    cleaned_ = CleanedDocument();
    cleaned_.outcome.reason = std::string(ReasonName(Reason::kEmpty));
  }
  verdict.language = cleaned_.language;
  verdict.language_score = cleaned_.language_score;
  verdict.perplexity = cleaned_.perplexity.scored ? cleaned_.perplexity.perplexity : 0;
  verdict.outcome = cleaned_.outcome;
  verdict.measurements = cleaned_.measurements;
  for (const auto& [name, count] : cleaned_.counters) out.tally.Add(name, count);
  Tally::Group& group = out.tally.GroupOf(source, cleaned_.language);
  group.read.Add(static_cast<int64_t>(verdict.bytes));
  group.read_bytes.Add(static_cast<int64_t>(verdict.bytes));
  if (verdict.outcome.kept()) {
    EncodeDocument({.place = verdict.place,
                    .id = id_,
                    .language = cleaned_.language,
                    .perplexity = verdict.perplexity,
                    .text = text_},
                   record_);
    if (plan_.config.perplexity) out.perplexities.Add(cleaned_.language, cleaned_.perplexity);
    PutBytes(record_, out.documents);
    out.kept_bytes += text_.size();
  } else {
    CountDropped(verdict, source, text, out);
  }
  EncodeVerdict(verdict, record_);
  PutBytes(record_, out.verdicts);
  return absl::OkStatus();
}

void ChunkCleaner::AddFault(const Reject& reject, const std::string& source, CleanedChunk& out) {
  VerdictRecord verdict{.place = PlaceOf(reject.place), .fault = true, .detail = reject.detail};
  verdict.outcome.reason = std::string(ReasonName(reject.reason));
  if (IsDamage(reject.reason)) out.tally.Add(kDamageCounter, 1);
  CountDropped(verdict, source, reject.detail, out);
  EncodeVerdict(verdict, record_);
  PutBytes(record_, out.verdicts);
}

void ChunkCleaner::CountDropped(const VerdictRecord& verdict, const std::string& source, absl::string_view text,
                                CleanedChunk& out) {
  const std::string& reason = verdict.outcome.reason;
  out.tally.GroupOf(source, verdict.language).dropped[reason].Add(static_cast<int64_t>(verdict.bytes));
  std::string place = absl::StrCat(plan_.files[verdict.place.file].file.path, ", byte ", verdict.place.byte);
  uint64_t key = Fingerprint64(place);
  if (!out.tally.WantsSample(reason, key)) return;
  out.tally.AddSample(reason, {.key = key,
                               .place = std::move(place),
                               .id = std::string(verdict.id),
                               .measured = verdict.outcome.measured,
                               .threshold = verdict.outcome.threshold,
                               .text = Beginning(text)});
}

}  // namespace llmctl::data
