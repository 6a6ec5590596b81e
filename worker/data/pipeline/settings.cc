#include "worker/data/pipeline/settings.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace llmctl::data {
namespace {

GopherRepetitionSettings Repetition(const contract::GopherRepetitionConfig& config) {
  GopherRepetitionSettings out;
  out.paragraph_fraction_max = config.paragraph_fraction_max;
  out.paragraph_character_fraction_max = config.paragraph_character_fraction_max;
  out.line_fraction_max = config.line_fraction_max;
  out.line_character_fraction_max = config.line_character_fraction_max;
  out.top_gram_fraction_max = {config.top_2_gram_fraction_max, config.top_3_gram_fraction_max,
                               config.top_4_gram_fraction_max};
  out.repeated_gram_fraction_max = {config.repeated_5_gram_fraction_max, config.repeated_6_gram_fraction_max,
                                    config.repeated_7_gram_fraction_max, config.repeated_8_gram_fraction_max,
                                    config.repeated_9_gram_fraction_max, config.repeated_10_gram_fraction_max};
  return out;
}

GopherQualitySettings Quality(const contract::GopherQualityConfig& config) {
  GopherQualitySettings out;
  out.words_min = config.words_min;
  out.words_max = config.words_max;
  out.mean_word_characters_min = config.mean_word_characters_min;
  out.mean_word_characters_max = config.mean_word_characters_max;
  out.hash_ratio_max = config.hash_ratio_max;
  out.ellipsis_ratio_max = config.ellipsis_ratio_max;
  out.bullet_line_fraction_max = config.bullet_line_fraction_max;
  out.ellipsis_line_fraction_max = config.ellipsis_line_fraction_max;
  out.letter_word_fraction_min = config.letter_word_fraction_min;
  out.stop_words_min = config.stop_words_min;
  for (const contract::StopWordsConfig& list : config.stop_words) out.stop_words[list.language] = list.words;
  return out;
}

C4Settings C4(const contract::C4Config& config) {
  C4Settings out;
  out.remove_citations = config.remove_citations;
  out.terminal_mark_required = config.terminal_mark_required;
  out.drop_javascript_lines = config.drop_javascript_lines;
  out.drop_policy_lines = config.drop_policy_lines;
  out.refuse_lorem_ipsum = config.refuse_lorem_ipsum;
  out.refuse_curly_bracket = config.refuse_curly_bracket;
  out.sentences_min = config.sentences_min;
  out.line_words_min = config.line_words_min;
  out.word_characters_max = config.word_characters_max;
  return out;
}

FineWebSettings FineWeb(const contract::FineWebConfig& config) {
  FineWebSettings out;
  out.terminal_line_fraction_min = config.terminal_line_fraction_min;
  out.keep_without_terminal_lines = config.keep_without_terminal_lines;
  out.short_line_fraction_max = config.short_line_fraction_max;
  out.short_line_characters = config.short_line_characters;
  out.repeated_line_character_fraction_max = config.repeated_line_character_fraction_max;
  out.line_ends_per_word_max = config.line_ends_per_word_max;
  return out;
}

TextUnit UnitOf(absl::string_view name) {
  if (name == "paragraph") return TextUnit::kParagraph;
  return name == "line" ? TextUnit::kLine : TextUnit::kDocument;
}

}  // namespace

absl::StatusOr<int64_t> ParseByteSize(absl::string_view text) {
  absl::string_view rest = text;
  if (absl::EndsWith(rest, "iB")) {
    rest.remove_suffix(2);
  } else if (absl::EndsWith(rest, "B")) {
    rest.remove_suffix(1);
  }
  size_t place = rest.empty() ? absl::string_view::npos : absl::string_view("KMGT").find(rest.back());
  int64_t number = 0;
  if (place == absl::string_view::npos || !absl::SimpleAtoi(rest.substr(0, rest.size() - 1), &number) || number < 1 ||
      number > 9999999) {
    return absl::InvalidArgumentError(absl::StrCat("found \"", text, "\", expected a size such as 512M or 2G"));
  }
  return number << (10 * (place + 1));
}

LanguageSettings LanguageSettingsOf(const contract::LanguageConfig& config) {
  LanguageSettings out;
  out.detector = config.detector == "fasttext" ? LanguageDetectorKind::kFastText : LanguageDetectorKind::kCld2;
  out.model_file = config.model;
  for (const contract::LanguageChoiceConfig& choice : config.keep) out.keep[choice.language] = choice.threshold;
  out.threshold = config.threshold;
  out.keep_unknown = config.keep_unknown;
  out.whole_text = config.whole_text;
  return out;
}

PerplexitySettings PerplexitySettingsOf(const contract::PerplexityConfig& config) {
  PerplexitySettings out;
  out.text.unit = config.unit == "pieces" ? ModelUnit::kPieces : ModelUnit::kWords;
  out.text.normalize = config.normalize;
  out.tokenizer = config.tokenizer;
  out.head_percentile = config.head_percentile;
  out.middle_percentile = config.middle_percentile;
  for (const contract::PerplexityModelConfig& model : config.models) {
    out.models[model.language] = model.arpa;
    if (model.head_cutoff) out.cutoffs[model.language] = {*model.head_cutoff, model.middle_cutoff.value_or(0)};
  }
  for (const std::string& bucket : config.keep) {
    if (!out.keep_buckets) out.keep_buckets.emplace();
    out.keep_buckets->push_back(bucket == "head"     ? PerplexityBucket::kHead
                                : bucket == "middle" ? PerplexityBucket::kMiddle
                                                     : PerplexityBucket::kTail);
  }
  out.perplexity_min = config.min;
  out.perplexity_max = config.max;
  return out;
}

PiiSettings PiiSettingsOf(const contract::PiiConfig& config) {
  PiiSettings out;
  if (config.parity == "datatrove") out.mode = PiiMode::kDatatrove;
  for (PiiRule& rule : out.rules) rule.action = ParsePiiAction(config.action).value_or(PiiAction::kReplace);
  for (const contract::PiiRuleConfig& rule : config.types) {
    std::optional<PiiType> type = ParsePiiType(rule.type);
    if (!type) continue;  // the specification knows no others
    out.Of(*type) = {.action = ParsePiiAction(rule.action).value_or(PiiAction::kReplace),
                     .replacement = rule.replacement};
  }
  return out;
}

LengthBalanceSettings LengthBalanceSettingsOf(const contract::LengthBalanceConfig& config) {
  LengthBalanceSettings out;
  out.edges.assign(config.edges.begin(), config.edges.end());
  out.weights = config.weights;
  out.repeat_max = config.repeat_max;
  if (config.tokens_target) out.tokens_target = static_cast<uint64_t>(*config.tokens_target);
  return out;
}

FilterSettings QualitySettings(const contract::QualityConfig& config) {
  FilterSettings out;
  out.mode = config.parity == "datatrove" ? FilterMode::kDatatrove : FilterMode::kDefault;
  if (config.gopher_repetition) out.gopher_repetition = Repetition(*config.gopher_repetition);
  if (config.gopher_quality) out.gopher_quality = Quality(*config.gopher_quality);
  if (config.c4) out.c4 = C4(*config.c4);
  if (config.fineweb) out.fineweb = FineWeb(*config.fineweb);
  if (config.paragraphs) {
    out.paragraphs = ParagraphSettings{.paragraphs_min = config.paragraphs->paragraphs_min,
                                       .paragraph_characters_min = config.paragraphs->paragraph_characters_min};
  }
  return out;
}

std::vector<ExactSettings> ExactDedupSettings(const std::optional<contract::ExactDedupConfig>& config) {
  std::vector<ExactSettings> out;
  if (!config) return out;
  for (const std::string& unit : config->units) {
    ExactSettings settings{.unit = UnitOf(unit)};
    if (settings.unit != TextUnit::kDocument) settings.bytes_min = config->bytes_min;
    out.push_back(settings);
  }
  return out;
}

NearSettings NearDedupSettings(const contract::NearDedupConfig& config) {
  NearSettings out;
  out.recipe = config.parity == "datatrove" ? ShingleRecipe::kDatatrove : ShingleRecipe::kFast;
  out.bands = config.bands;
  out.rows = config.rows;
  out.shingle_words = config.shingle_words;
  out.seed = config.seed;
  out.jaccard_min = config.jaccard_min;
  return out;
}

MixSettings MixSettingsOf(const contract::MixConfig& config) {
  MixSettings out;
  out.method = config.method == "explicit"      ? MixMethod::kExplicit
               : config.method == "temperature" ? MixMethod::kTemperature
               : config.method == "unimax"      ? MixMethod::kUniMax
                                                : MixMethod::kProportional;
  for (const contract::MixWeightConfig& weight : config.weights) out.weights[weight.group] = weight.weight;
  if (out.method == MixMethod::kTemperature) out.alpha = config.alpha;
  if (out.method == MixMethod::kUniMax) {
    out.epochs_max = config.epochs_max;
    out.budget_tokens = config.budget_tokens;
  }
  return out;
}

PackSettings PackSettingsOf(const contract::PackConfig& config) {
  PackSettings out;
  out.sequence_length = config.sequence_length;
  out.long_documents = config.long_documents == "truncate" ? LongDocuments::kTruncate : LongDocuments::kCut;
  out.window_tokens = config.window_tokens;
  return out;
}

}  // namespace llmctl::data
