#include "worker/data/filters/filter_settings.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace llmctl::data {
namespace {

class Faults {
 public:
  void CheckAmount(absl::string_view name, std::optional<double> value) {
    if (value.has_value() && !(std::isfinite(*value) && *value >= 0)) {
      faults_.push_back(absl::StrCat(name, " is ", *value, ", expected a number from 0 on"));
    }
  }
  void CheckPositive(absl::string_view name, std::optional<int64_t> value) {
    if (value.has_value() && *value < 1) {
      faults_.push_back(absl::StrCat(name, " is ", *value, ", expected a number from 1 on"));
    }
  }
  void CheckRange(absl::string_view names, std::optional<double> low, std::optional<double> high) {
    if (low.has_value() && high.has_value() && *low > *high) {
      faults_.push_back(absl::StrCat(names, ": the least, ", *low, ", is more than the most, ", *high));
    }
  }
  void Add(std::string fault) { faults_.push_back(std::move(fault)); }

  absl::Status ToStatus() const {
    if (faults_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("quality filters: ", absl::StrJoin(faults_, "; ")));
  }

 private:
  std::vector<std::string> faults_;
};

void CheckRepetition(const GopherRepetitionSettings& settings, Faults& faults) {
  faults.CheckAmount("gopher_repetition.paragraph_fraction_max", settings.paragraph_fraction_max);
  faults.CheckAmount("gopher_repetition.paragraph_character_fraction_max", settings.paragraph_character_fraction_max);
  faults.CheckAmount("gopher_repetition.line_fraction_max", settings.line_fraction_max);
  faults.CheckAmount("gopher_repetition.line_character_fraction_max", settings.line_character_fraction_max);
  for (std::optional<double> threshold : settings.top_gram_fraction_max) {
    faults.CheckAmount("gopher_repetition.top_gram_fraction_max", threshold);
  }
  for (std::optional<double> threshold : settings.repeated_gram_fraction_max) {
    faults.CheckAmount("gopher_repetition.repeated_gram_fraction_max", threshold);
  }
}

void CheckQuality(const GopherQualitySettings& settings, Faults& faults) {
  faults.CheckAmount("gopher_quality.words_min", settings.words_min);
  faults.CheckAmount("gopher_quality.words_max", settings.words_max);
  faults.CheckRange("gopher_quality.words_min/max", settings.words_min, settings.words_max);
  faults.CheckAmount("gopher_quality.mean_word_characters_min", settings.mean_word_characters_min);
  faults.CheckAmount("gopher_quality.mean_word_characters_max", settings.mean_word_characters_max);
  faults.CheckRange("gopher_quality.mean_word_characters_min/max", settings.mean_word_characters_min,
                    settings.mean_word_characters_max);
  faults.CheckAmount("gopher_quality.hash_ratio_max", settings.hash_ratio_max);
  faults.CheckAmount("gopher_quality.ellipsis_ratio_max", settings.ellipsis_ratio_max);
  faults.CheckAmount("gopher_quality.bullet_line_fraction_max", settings.bullet_line_fraction_max);
  faults.CheckAmount("gopher_quality.ellipsis_line_fraction_max", settings.ellipsis_line_fraction_max);
  faults.CheckAmount("gopher_quality.letter_word_fraction_min", settings.letter_word_fraction_min);
  faults.CheckAmount("gopher_quality.stop_words_min", settings.stop_words_min);
  if (settings.stop_words_min.has_value() && !settings.stop_words.contains("")) {
    faults.Add("gopher_quality.stop_words has no list for \"\", which serves all languages without one");
  }
}

void CheckRest(const FilterSettings& settings, Faults& faults) {
  if (settings.c4.has_value()) {
    faults.CheckAmount("c4.sentences_min", settings.c4->sentences_min);
    faults.CheckPositive("c4.line_words_min", settings.c4->line_words_min);
    faults.CheckPositive("c4.word_characters_max", settings.c4->word_characters_max);
  }
  if (settings.fineweb.has_value()) {
    const FineWebSettings& fineweb = *settings.fineweb;
    faults.CheckAmount("fineweb.terminal_line_fraction_min", fineweb.terminal_line_fraction_min);
    faults.CheckAmount("fineweb.short_line_fraction_max", fineweb.short_line_fraction_max);
    faults.CheckAmount("fineweb.short_line_characters", fineweb.short_line_characters);
    faults.CheckAmount("fineweb.repeated_line_character_fraction_max", fineweb.repeated_line_character_fraction_max);
    faults.CheckAmount("fineweb.line_ends_per_word_max", fineweb.line_ends_per_word_max);
  }
  if (settings.paragraphs.has_value()) {
    faults.CheckPositive("paragraphs.paragraphs_min", settings.paragraphs->paragraphs_min);
    faults.CheckPositive("paragraphs.paragraph_characters_min", settings.paragraphs->paragraph_characters_min);
  }
}

std::string Number(std::optional<int64_t> number) { return number.has_value() ? absl::StrCat(*number) : "off"; }

}  // namespace

absl::Status FilterSettings::Validate() const {
  Faults faults;
  if (gopher_repetition.has_value()) CheckRepetition(*gopher_repetition, faults);
  if (gopher_quality.has_value()) CheckQuality(*gopher_quality, faults);
  CheckRest(*this, faults);
  return faults.ToStatus();
}

FilterSettings FilterSettings::FineWeb() {
  FilterSettings settings;
  settings.gopher_repetition.emplace();
  settings.gopher_quality.emplace();
  settings.c4.emplace().terminal_mark_required = false;
  settings.fineweb.emplace();
  return settings;
}

std::string MeasurementOf(const FilterSettings& settings) {
  std::string out = settings.mode == FilterMode::kDatatrove ? "datatrove" : "default";
  if (settings.gopher_quality.has_value()) {
    for (const auto& [language, words] : settings.gopher_quality->stop_words) {
      absl::StrAppend(&out, "; stop words ", language, ":", absl::StrJoin(words, " "));
    }
  }
  if (settings.c4.has_value()) {
    const C4Settings& c4 = *settings.c4;
    absl::StrAppend(&out, "; c4 citations ", c4.remove_citations, " terminal ", c4.terminal_mark_required,
                    " javascript ", c4.drop_javascript_lines, " policy ", c4.drop_policy_lines, " words ",
                    Number(c4.line_words_min), " characters ", Number(c4.word_characters_max));
  }
  if (settings.fineweb.has_value()) absl::StrAppend(&out, "; short line ", settings.fineweb->short_line_characters);
  if (settings.paragraphs.has_value()) absl::StrAppend(&out, "; paragraphs ", settings.paragraphs->paragraphs_min);
  return out;
}

}  // namespace llmctl::data
