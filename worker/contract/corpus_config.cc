#include "worker/contract/corpus_config.h"

#include <optional>

#include "absl/status/status.h"

#include "common/base/status.h"
#include "worker/contract/json_fields.h"

namespace llmctl::contract {

// Found by argument-dependent lookup, hence not in an unnamed namespace.

template <typename V>
void VisitFields(V& visit, FieldsOf<CorpusSourceConfig> auto& m) {
  visit("name", m.name);
  visit("paths", m.paths);
  visit("text_field", m.text_field);
  visit("id_field", m.id_field);
  visit("format", m.format);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<ReadConfig> auto& m) {
  visit("invalid_utf8", m.invalid_utf8);
  visit("truncated", m.truncated);
  visit("document_bytes_max", m.document_bytes_max);
  visit("giant", m.giant);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<NormalizeConfig> auto& m) {
  visit("form", m.form);
  visit("controls", m.controls);
  visit("whitespace", m.whitespace);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<LanguageChoiceConfig> auto& m) {
  visit("language", m.language);
  visit("threshold", m.threshold);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<LanguageConfig> auto& m) {
  visit("detector", m.detector);
  visit("model", m.model);
  visit("keep", m.keep);
  visit("threshold", m.threshold);
  visit("keep_unknown", m.keep_unknown);
  visit("whole_text", m.whole_text);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<GopherRepetitionConfig> auto& m) {
  visit("paragraph_fraction_max", m.paragraph_fraction_max);
  visit("paragraph_character_fraction_max", m.paragraph_character_fraction_max);
  visit("line_fraction_max", m.line_fraction_max);
  visit("line_character_fraction_max", m.line_character_fraction_max);
  visit("top_2_gram_fraction_max", m.top_2_gram_fraction_max);
  visit("top_3_gram_fraction_max", m.top_3_gram_fraction_max);
  visit("top_4_gram_fraction_max", m.top_4_gram_fraction_max);
  visit("repeated_5_gram_fraction_max", m.repeated_5_gram_fraction_max);
  visit("repeated_6_gram_fraction_max", m.repeated_6_gram_fraction_max);
  visit("repeated_7_gram_fraction_max", m.repeated_7_gram_fraction_max);
  visit("repeated_8_gram_fraction_max", m.repeated_8_gram_fraction_max);
  visit("repeated_9_gram_fraction_max", m.repeated_9_gram_fraction_max);
  visit("repeated_10_gram_fraction_max", m.repeated_10_gram_fraction_max);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<StopWordsConfig> auto& m) {
  visit("language", m.language);
  visit("words", m.words);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<GopherQualityConfig> auto& m) {
  visit("words_min", m.words_min);
  visit("words_max", m.words_max);
  visit("mean_word_characters_min", m.mean_word_characters_min);
  visit("mean_word_characters_max", m.mean_word_characters_max);
  visit("hash_ratio_max", m.hash_ratio_max);
  visit("ellipsis_ratio_max", m.ellipsis_ratio_max);
  visit("bullet_line_fraction_max", m.bullet_line_fraction_max);
  visit("ellipsis_line_fraction_max", m.ellipsis_line_fraction_max);
  visit("letter_word_fraction_min", m.letter_word_fraction_min);
  visit("stop_words_min", m.stop_words_min);
  visit("stop_words", m.stop_words);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<C4Config> auto& m) {
  visit("remove_citations", m.remove_citations);
  visit("terminal_mark_required", m.terminal_mark_required);
  visit("drop_javascript_lines", m.drop_javascript_lines);
  visit("drop_policy_lines", m.drop_policy_lines);
  visit("refuse_lorem_ipsum", m.refuse_lorem_ipsum);
  visit("refuse_curly_bracket", m.refuse_curly_bracket);
  visit("sentences_min", m.sentences_min);
  visit("line_words_min", m.line_words_min);
  visit("word_characters_max", m.word_characters_max);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<FineWebConfig> auto& m) {
  visit("terminal_line_fraction_min", m.terminal_line_fraction_min);
  visit("keep_without_terminal_lines", m.keep_without_terminal_lines);
  visit("short_line_fraction_max", m.short_line_fraction_max);
  visit("short_line_characters", m.short_line_characters);
  visit("repeated_line_character_fraction_max", m.repeated_line_character_fraction_max);
  visit("line_ends_per_word_max", m.line_ends_per_word_max);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<ParagraphConfig> auto& m) {
  visit("paragraphs_min", m.paragraphs_min);
  visit("paragraph_characters_min", m.paragraph_characters_min);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<QualityConfig> auto& m) {
  visit("parity", m.parity);
  visit("keep_measurements", m.keep_measurements);
  visit("gopher_repetition", m.gopher_repetition);
  visit("gopher_quality", m.gopher_quality);
  visit("c4", m.c4);
  visit("fineweb", m.fineweb);
  visit("paragraphs", m.paragraphs);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<PerplexityModelConfig> auto& m) {
  visit("language", m.language);
  visit("arpa", m.arpa);
  visit("head_cutoff", m.head_cutoff);
  visit("middle_cutoff", m.middle_cutoff);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<PerplexityConfig> auto& m) {
  visit("models", m.models);
  visit("unit", m.unit);
  visit("tokenizer", m.tokenizer);
  visit("normalize", m.normalize);
  visit("head_percentile", m.head_percentile);
  visit("middle_percentile", m.middle_percentile);
  visit("keep", m.keep);
  visit("min", m.min);
  visit("max", m.max);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<PiiRuleConfig> auto& m) {
  visit("type", m.type);
  visit("action", m.action);
  visit("replacement", m.replacement);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<PiiConfig> auto& m) {
  visit("parity", m.parity);
  visit("action", m.action);
  visit("types", m.types);
  visit("key_file", m.key_file);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<ExactDedupConfig> auto& m) {
  visit("units", m.units);
  visit("bytes_min", m.bytes_min);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<NearDedupConfig> auto& m) {
  visit("parity", m.parity);
  visit("bands", m.bands);
  visit("rows", m.rows);
  visit("shingle_words", m.shingle_words);
  visit("seed", m.seed);
  visit("jaccard_min", m.jaccard_min);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<LengthBalanceConfig> auto& m) {
  visit("edges", m.edges);
  visit("weights", m.weights);
  visit("repeat_max", m.repeat_max);
  visit("tokens_target", m.tokens_target);
  visit("seed", m.seed);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<MixWeightConfig> auto& m) {
  visit("group", m.group);
  visit("weight", m.weight);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<MixConfig> auto& m) {
  visit("by", m.by);
  visit("method", m.method);
  visit("weights", m.weights);
  visit("alpha", m.alpha);
  visit("epochs_max", m.epochs_max);
  visit("budget_tokens", m.budget_tokens);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<PackConfig> auto& m) {
  visit("sequence_length", m.sequence_length);
  visit("long_documents", m.long_documents);
  visit("window_tokens", m.window_tokens);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<CorpusConfig> auto& m) {
  visit("name", m.name);
  visit("output", m.output);
  visit("memory", m.memory);
  visit("threads", m.threads);
  visit("workers", m.workers);
  visit("sources", m.sources);
  visit("read", m.read);
  visit("normalize", m.normalize);
  visit("language", m.language);
  visit("quality", m.quality);
  visit("perplexity", m.perplexity);
  visit("pii", m.pii);
  visit("exact_dedup", m.exact_dedup);
  visit("near_dedup", m.near_dedup);
  visit("length_balance", m.length_balance);
  visit("mix", m.mix);
  visit("tokenizer", m.tokenizer);
  visit("pack", m.pack);
  visit("validation_fraction", m.validation_fraction);
}

std::string EncodeCorpusConfig(const CorpusConfig& config) {
  return DumpJson(FieldWriter::Write(config), /*indent=*/2) + "\n";
}

absl::StatusOr<CorpusConfig> DecodeCorpusConfig(absl::string_view json) {
  std::optional<Json> parsed = ParseJson(json);
  if (!parsed.has_value()) return absl::InvalidArgumentError("corpus configuration is not JSON");
  CorpusConfig config;
  absl::Status read = FieldReader::Read(*parsed, "", FieldReader::UnknownFields::kRefuse, config);
  if (!read.ok()) return Annotate(read, "corpus configuration");
  return config;
}

}  // namespace llmctl::contract
