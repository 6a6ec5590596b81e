#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/base/status.h"
#include "worker/data/command/audited_dataset.h"
#include "worker/data/command/command.h"
#include "worker/data/filters/document_filter.h"
#include "worker/data/filters/judge.h"
#include "worker/data/pipeline/chunk_cleaner.h"
#include "worker/data/pipeline/settings.h"
#include "worker/data/read/file_system.h"
#include "worker/data/read/record_reader.h"

namespace llmctl::data {
namespace {

// A record of the audit, kept.
struct Found {
  size_t segment = 0;
  uint64_t index = 0;  // among the documents of the segment, if it is one
  std::string id;
  std::string language;
  std::string detail;
  VerdictRecord verdict;
};

Found Keep(size_t segment, uint64_t index, const VerdictRecord& verdict) {
  return {.segment = segment,
          .index = index,
          .id = std::string(verdict.id),
          .language = std::string(verdict.language),
          .detail = std::string(verdict.detail),
          .verdict = verdict};
}

std::string NameOf(const Audit& audit, const Found& found) {
  std::string place = audit.PlaceName(found.segment, found.verdict.place);
  return found.id.empty() ? place : absl::StrCat(found.id, " (", place, ")");
}

// By its id, or by file:line.
absl::StatusOr<std::vector<Found>> Find(const Audit& audit, const std::string& name) {
  std::vector<Found> out;
  for (size_t segment = 0; segment < audit.segments().size(); ++segment) {
    LLM_RETURN_IF_ERROR(
        audit.ForEach(segment, [&](const VerdictRecord& verdict, uint64_t kept) -> absl::StatusOr<bool> {
          if (verdict.id == name || audit.PlaceName(segment, verdict.place) == name) {
            out.push_back(Keep(segment, kept, verdict));
          }
          return true;
        }));
  }
  if (!out.empty()) return out;
  return absl::NotFoundError(absl::StrCat("no record ", name, ", neither by id nor by file:line"));
}

absl::StatusOr<Found> DocumentAt(const Audit& audit, size_t segment, uint64_t index) {
  std::optional<Found> out;
  LLM_RETURN_IF_ERROR(audit.ForEach(segment, [&](const VerdictRecord& verdict, uint64_t kept) -> absl::StatusOr<bool> {
    if (kept != index || !verdict.outcome.kept()) return true;
    out = Keep(segment, kept, verdict);
    return false;
  }));
  if (out) return *std::move(out);
  return absl::DataLossError("the audit names a document that there is not");
}

// The text as the cleaning stages saw it, read from the input again.
absl::StatusOr<std::string> ReadText(const AuditedDataset& dataset, const Found& found) {
  const CorpusPlan& plan = dataset.plan();
  const DocumentPlace& place = found.verdict.place;
  const PlannedFile& planned = plan.files[place.file];
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<FileSystem> files, FileSystemOf(planned.file.path));
  LLM_ASSIGN_OR_RETURN(ReadSettings settings, ReadSettingsOf(plan.config, planned.source));
  TextNormalizer normalizer(NormalizeSettingsOf(plan.config.normalize));
  ChunkParser parser(settings);
  ParsedChunk parsed;
  std::string scratch;
  for (const InputRange& piece : plan.tasks[dataset.audit().segments()[found.segment].task].pieces) {
    if (piece.file != place.file) continue;
    LLM_ASSIGN_OR_RETURN(std::unique_ptr<RecordReader> reader,
                         RecordReader::Open(*files, planned.file,
                                            {.file = piece.file, .begin = piece.begin, .end = piece.end}, settings));
    while (true) {
      LLM_ASSIGN_OR_RETURN(std::unique_ptr<Chunk> chunk, reader->Next());
      if (chunk == nullptr) break;
      parser.Parse(*chunk, parsed);
      for (const ParsedDocument& document : parsed.documents) {
        if (document.place.byte != place.byte) continue;
        return std::string(normalizer.Normalize(document.text, scratch, parsed.repairs));
      }
    }
  }
  return absl::NotFoundError(absl::StrCat(planned.file.path, " does not have the document any more"));
}

void PrintRules(const std::vector<RuleResult>& rules) {
  for (const RuleResult& rule : rules) {
    std::string expected(rule.expected);
    if (expected != "none") absl::StrAppendFormat(&expected, " %g", rule.verdict.threshold);
    absl::PrintF("  %-48s %12g   %-16s%s\n",
                 absl::StrCat(FilterName(rule.verdict.rule), ".", ReasonName(rule.verdict.rule)),
                 rule.verdict.measured, expected, rule.drops ? "   drops" : "");
  }
}

absl::Status ExplainQuality(const AuditedDataset& dataset, const Found& found, const std::string& text) {
  if (!dataset.plan().config.quality) return absl::OkStatus();
  FilterRules rules(QualitySettings(*dataset.plan().config.quality));
  DocumentFilter filter(rules);
  std::string rewritten;
  FilterStats stats = filter.Measure(text, found.language, rewritten);
  std::vector<RuleResult> results;
  LLM_RETURN_IF_ERROR(Judge(stats, rules.settings(), &results).status());
  absl::PrintF("quality, every rule: what was measured, what was expected\n");
  PrintRules(results);
  return absl::OkStatus();
}

absl::Status ExplainLoss(const Audit& audit, const Found& found) {
  LLM_ASSIGN_OR_RETURN(auto losses, audit.LossesOf(found.segment));
  auto lost = losses.find(found.index);
  if (lost == losses.end()) {
    absl::PrintF("kept: it is in the dataset\n");
    return absl::OkStatus();
  }
  const Loss& loss = lost->second;
  if (loss.kind == Loss::Kind::kPerplexity) {
    absl::PrintF("dropped: its perplexity %g puts it into the %s of its language, which is not kept (from %g on)\n",
                 loss.perplexity.measured, BucketName(loss.perplexity.bucket), loss.perplexity.threshold);
    return absl::OkStatus();
  }
  LLM_ASSIGN_OR_RETURN(auto kept_at, audit.DocumentOf(loss.pass, loss.kept));
  LLM_ASSIGN_OR_RETURN(Found kept, DocumentAt(audit, kept_at.first, kept_at.second));
  if (loss.kind == Loss::Kind::kExact) {
    absl::PrintF("dropped: what it says was said before, in %s\n", NameOf(audit, kept));
    return absl::OkStatus();
  }
  absl::PrintF("dropped: a near duplicate of %s, Jaccard %.3f\n", NameOf(audit, kept), loss.kept_jaccard);
  if (loss.match == loss.kept) return absl::OkStatus();
  LLM_ASSIGN_OR_RETURN(auto match_at, audit.DocumentOf(loss.pass, loss.match));
  LLM_ASSIGN_OR_RETURN(Found match, DocumentAt(audit, match_at.first, match_at.second));
  absl::PrintF("  found by way of %s, Jaccard %.3f\n", NameOf(audit, match), loss.match_jaccard);
  return absl::OkStatus();
}

absl::Status ExplainOne(const AuditedDataset& dataset, const Found& found) {
  const VerdictRecord& verdict = found.verdict;
  absl::PrintF("%s, byte %d, %d bytes of text, source %s\n", NameOf(dataset.audit(), found), verdict.place.byte,
               verdict.bytes, dataset.plan().config.sources[dataset.plan().files[verdict.place.file].source].name);
  if (!found.language.empty()) absl::PrintF("language %s, score %.3f\n", found.language, verdict.language_score);
  if (verdict.perplexity > 0) absl::PrintF("perplexity %g\n", verdict.perplexity);
  if (verdict.fault) {
    absl::PrintF("could not be read: %s%s%s\n", verdict.outcome.reason, found.detail.empty() ? "" : ": ",
                 found.detail);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> text = ReadText(dataset, found);
  if (text.ok()) {
    LLM_RETURN_IF_ERROR(ExplainQuality(dataset, found, *text));
  } else {
    absl::PrintF("(the text cannot be measured again: %s)\n", text.status().message());
  }
  if (verdict.outcome.kept()) return ExplainLoss(dataset.audit(), found);
  absl::PrintF("dropped: %s, measured %g, threshold %g\n", verdict.outcome.reason, verdict.outcome.measured,
               verdict.outcome.threshold);
  return absl::OkStatus();
}

absl::Status Explain(const std::string& folder, const std::string& name) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<AuditedDataset> dataset, AuditedDataset::Open(folder));
  LLM_ASSIGN_OR_RETURN(std::vector<Found> all, Find(dataset->audit(), name));
  for (const Found& found : all) LLM_RETURN_IF_ERROR(ExplainOne(*dataset, found));
  return absl::OkStatus();
}

}  // namespace

Verb AddExplain(CLI::App& app) {
  auto dataset = std::make_shared<std::string>();
  auto name = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("explain", "say what became of a document, and why");
  verb->add_option("dataset", *dataset, "folder of the dataset")->required();
  verb->add_option("id", *name, "the document's id, or file:line")->required();
  return {verb, [dataset, name] { return Report(Explain(*dataset, *name)); }};
}

}  // namespace llmctl::data
