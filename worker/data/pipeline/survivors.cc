#include "worker/data/pipeline/survivors.h"

#include <optional>
#include <utility>

#include "common/base/status.h"
#include "worker/data/normalize/text_normalizer.h"
#include "worker/data/pipeline/block_file.h"
#include "worker/data/pipeline/settings.h"

namespace llmctl::data {

int DedupPasses(const contract::CorpusConfig& config) {
  int exact = config.exact_dedup ? static_cast<int>(config.exact_dedup->units.size()) : 0;
  return exact + (config.near_dedup ? 1 : 0);
}

absl::StatusOr<std::unique_ptr<Survivors>> Survivors::Open(const Workspace& workspace,
                                                           const std::vector<Segment>& segments, int passes) {
  std::unique_ptr<Survivors> out(new Survivors(workspace, segments));
  const contract::CorpusConfig& config = workspace.plan().config;
  LLM_RETURN_IF_ERROR(out->ReadPerplexities());
  int exact = DedupPasses(config) - (config.near_dedup ? 1 : 0);
  for (int pass = 0; pass < passes; ++pass) {
    if (pass < exact) {
      ExactPlan plan = workspace.PlanOfExact(pass, segments);
      LLM_ASSIGN_OR_RETURN(RepeatReader reader, RepeatReader::Open(plan, workspace.quick_files()));
      out->exact_.push_back({plan.settings, std::move(reader)});
    } else {
      LLM_ASSIGN_OR_RETURN(DuplicateReader reader,
                           DuplicateReader::Open(workspace.PlanOfNear(segments), workspace.quick_files()));
      out->near_ = std::make_unique<DuplicateReader>(std::move(reader));
    }
  }
  return out;
}

absl::Status Survivors::ReadPerplexities() {
  const std::optional<contract::PerplexityConfig>& config = workspace_.plan().config.perplexity;
  if (!config || config->keep.empty()) return absl::OkStatus();
  perplexity_ = PerplexitySettingsOf(*config);
  PerplexitySketch sketch;
  for (const Segment& segment : segments_) {
    LLM_ASSIGN_OR_RETURN(SegmentFooter footer, workspace_.ReadFooter(segment));
    sketch.Merge(footer.perplexities);
  }
  cutoffs_ = sketch.Cutoffs(*perplexity_);
  return absl::OkStatus();
}

bool Survivors::KeepsPerplexity(const DocumentRecord& document, Loss& loss) const {
  if (!perplexity_ || document.perplexity == 0) return true;
  std::string language(document.language);
  // Judged by its own cut-offs when it was cleaned.
  if (FindCutoffs(perplexity_->cutoffs, language) != nullptr) return true;
  PerplexityMeasure measure{.scored = true, .perplexity = document.perplexity};
  loss.perplexity = JudgePerplexity(measure, FindCutoffs(cutoffs_, language), *perplexity_);
  if (loss.perplexity.keep()) return true;
  loss.kind = Loss::Kind::kPerplexity;
  loss.pass = -1;
  return false;
}

absl::StatusOr<bool> Survivors::Apply(size_t pass, uint64_t number, std::string& text, Loss& loss) {
  if (pass == exact_.size()) {
    LLM_ASSIGN_OR_RETURN(std::optional<Duplicate> duplicate, near_->Find(number));
    if (!duplicate) return true;
    loss = {.kind = Loss::Kind::kNear,
            .pass = static_cast<int>(pass),
            .number = number,
            .kept = duplicate->kept,
            .match = duplicate->match,
            .kept_jaccard = duplicate->kept_jaccard,
            .match_jaccard = duplicate->match_jaccard};
    return false;
  }
  ExactPass& exact = exact_[pass];
  repeats_.clear();
  LLM_RETURN_IF_ERROR(exact.reader.Find(number, repeats_));
  if (repeats_.empty()) return true;
  loss = {.pass = static_cast<int>(pass), .number = number, .kept = repeats_.front().first_document};
  if (exact.settings.unit == TextUnit::kDocument) return false;
  units_.clear();
  for (const Repeat& repeat : repeats_) units_.push_back(repeat.unit);
  text = RemoveUnits(text, exact.settings.unit, units_);
  return HasContent(text);
}

absl::Status Survivors::ForEach(size_t segment, Take take) {
  size_t passes = exact_.size() + (near_ != nullptr ? 1 : 0);
  std::vector<uint64_t> next(passes);
  for (size_t pass = 0; pass < passes; ++pass) {
    next[pass] = pass < exact_.size() ? exact_[pass].reader.FirstDocument(segment) : near_->FirstDocument(segment);
  }
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<BlockFileReader> file,
                       BlockFileReader::Open(workspace_.files(), workspace_.DocumentsPath(segments_[segment]),
                                             workspace_.clean_digest()));
  absl::string_view record;
  DocumentRecord document;
  std::string text;
  for (uint64_t index = 0;; ++index) {
    LLM_ASSIGN_OR_RETURN(bool more, file->Next(record));
    if (!more) return absl::OkStatus();
    LLM_RETURN_IF_ERROR(DecodeDocument(record, document));
    text.assign(document.text.data(), document.text.size());
    Loss loss;
    bool kept = KeepsPerplexity(document, loss);
    for (size_t pass = 0; pass < passes && kept; ++pass) {
      LLM_ASSIGN_OR_RETURN(kept, Apply(pass, next[pass]++, text, loss));
    }
    if (!kept) text.clear();
    LLM_RETURN_IF_ERROR(take(index, document, text, kept ? nullptr : &loss));
  }
}

}  // namespace llmctl::data
