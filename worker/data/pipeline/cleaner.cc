#include "worker/data/pipeline/cleaner.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "worker/data/filters/judge.h"
#include "worker/data/pipeline/measurement_record.h"
#include "worker/data/pipeline/settings.h"

namespace llmctl::data {
namespace {

Outcome OutcomeOf(const Verdict& verdict) {
  if (verdict.keep()) return {};
  return {.reason = absl::StrCat(FilterName(verdict.rule), ".", ReasonName(verdict.rule)),
          .measured = verdict.measured,
          .threshold = verdict.threshold};
}

}  // namespace

absl::StatusOr<std::unique_ptr<CleaningRules>> CleaningRules::Create(const contract::CorpusConfig& config) {
  std::unique_ptr<CleaningRules> rules(new CleaningRules);
  if (config.quality) {
    FilterSettings settings = QualitySettings(*config.quality);
    LLM_RETURN_IF_ERROR(Annotate(settings.Validate(), "quality"));
    rules->quality_ = std::make_unique<FilterRules>(std::move(settings));
    rules->keep_measurements_ = config.quality->keep_measurements;
  }
  if (config.language) LLM_RETURN_IF_ERROR(Annotate(rules->LoadLanguage(*config.language), "language"));
  if (config.perplexity) {
    rules->perplexity_settings_ = PerplexitySettingsOf(*config.perplexity);
    LLM_RETURN_IF_ERROR(rules->perplexity_settings_.Validate());
    LLM_ASSIGN_OR_RETURN(rules->perplexity_, PerplexityModels::Load(rules->perplexity_settings_));
  }
  if (config.pii) LLM_RETURN_IF_ERROR(Annotate(rules->LoadPii(*config.pii), "pii"));
  return rules;
}

absl::Status CleaningRules::LoadLanguage(const contract::LanguageConfig& config) {
  language_settings_ = LanguageSettingsOf(config);
  LLM_RETURN_IF_ERROR(language_settings_.Validate());
  LLM_ASSIGN_OR_RETURN(language_, LanguageDetector::Create(language_settings_));
  return absl::OkStatus();
}

absl::Status CleaningRules::LoadPii(const contract::PiiConfig& config) {
  PiiSettings settings = PiiSettingsOf(config);
  std::optional<PiiKey> key;
  if (!config.key_file.empty()) {
    LLM_ASSIGN_OR_RETURN(key, PiiKey::FromFile(config.key_file));
  }
  LLM_ASSIGN_OR_RETURN(pii_, PiiRules::Create(std::move(settings), std::move(key)));
  return absl::OkStatus();
}

Cleaner::Cleaner(const CleaningRules& rules) : rules_(rules) {
  if (rules.language() != nullptr) language_ = rules.language()->MakeScratch();
  if (rules.quality() != nullptr) quality_.emplace(*rules.quality());
  if (rules.perplexity() != nullptr) perplexity_.emplace(*rules.perplexity());
  if (rules.pii() != nullptr) pii_.emplace(*rules.pii());
}

absl::Status Cleaner::Run(std::string& text, CleanedDocument& out) {
  out = CleanedDocument();
  if (language_ != nullptr) RunLanguage(text, out);
  if (out.outcome.kept() && quality_) LLM_RETURN_IF_ERROR(RunQuality(text, out));
  if (out.outcome.kept() && perplexity_) RunPerplexity(text, out);
  if (out.outcome.kept() && pii_) RunPii(text, out);
  return absl::OkStatus();
}

void Cleaner::RunLanguage(const std::string& text, CleanedDocument& out) {
  LanguageGuess guess = rules_.language()->Detect(text, *language_);
  LanguageVerdict verdict = Judge(guess, rules_.language_settings());
  out.language = std::string(guess.label);
  out.language_score = guess.score;
  if (verdict.keep()) return;
  out.outcome = {.reason = std::string(ReasonName(verdict.rule)),
                 .measured = verdict.measured,
                 .threshold = verdict.threshold};
}

// Cut-offs that follow from the whole corpus are not known yet: survivors.h judges by them.
void Cleaner::RunPerplexity(const std::string& text, CleanedDocument& out) {
  const PerplexitySettings& settings = rules_.perplexity_settings();
  out.perplexity = perplexity_->Measure(text, out.language);
  PerplexityVerdict verdict = JudgePerplexity(out.perplexity, FindCutoffs(settings.cutoffs, out.language), settings);
  if (verdict.keep()) return;
  out.outcome = {.reason = std::string(ReasonName(verdict.reason)),
                 .measured = verdict.measured,
                 .threshold = verdict.threshold};
}

void Cleaner::RunPii(std::string& text, CleanedDocument& out) {
  PiiCounters counters;
  PiiOutcome outcome = pii_->Apply(text, counters);
  for (int type = 0; type < kPiiTypes; ++type) {
    if (counters.found[type] == 0) continue;
    out.counters.emplace_back(absl::StrCat("personal data found: ", PiiTypeName(static_cast<PiiType>(type))),
                              counters.found[type]);
  }
  if (counters.documents_changed > 0) out.counters.emplace_back("documents with personal data replaced", 1);
  if (outcome.keep) return;
  out.outcome = {.reason = outcome.reason, .measured = outcome.value, .threshold = outcome.threshold};
}

absl::Status Cleaner::RunQuality(std::string& text, CleanedDocument& out) {
  if (!rules_.keep_measurements()) {
    out.outcome = OutcomeOf(quality_->Run(text, out.language));
    return absl::OkStatus();
  }
  FilterStats stats = quality_->Measure(text, out.language, rewritten_);
  LLM_ASSIGN_OR_RETURN(Verdict verdict, Judge(stats, rules_.quality()->settings()));
  EncodeMeasurements(stats, out.measurements);
  out.outcome = OutcomeOf(verdict);
  if (verdict.keep()) std::swap(text, rewritten_);
  return absl::OkStatus();
}

}  // namespace llmctl::data
