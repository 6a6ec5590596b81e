// What llm-data is told about a corpus: the corpus specification (proto/llmctl/v1/corpus.proto, which says what each
// field means), resolved: no defaults left to guess, paths absolute, a stage that is absent left out. llmctl writes it
// as JSON; llm-data reads it from --spec.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::contract {

// Where text comes from.
struct CorpusSourceConfig {
  std::string name;
  std::vector<std::string> paths;
  std::string text_field;
  std::string id_field;
  std::string format;  // "auto", "text", "jsonl", "parquet"
};

struct ReadConfig {
  std::string invalid_utf8;  // "replace", "reject"
  std::string truncated;  // "refuse", "allow"
  std::string document_bytes_max;  // a size: "64M"
  std::string giant;  // "split", "reject"
};

struct NormalizeConfig {
  std::string form;  // "NFC", "NFKC", "none"
  std::string controls;  // "remove", "keep"
  std::string whitespace;  // "keep", "trim", "collapse"
};

struct LanguageChoiceConfig {
  std::string language;
  std::optional<double> threshold;
};

struct LanguageConfig {
  std::string detector;  // "cld2", "fasttext"
  std::string model;
  std::vector<LanguageChoiceConfig> keep;
  double threshold = 0;
  bool keep_unknown = false;
  bool whole_text = false;
};

struct GopherRepetitionConfig {
  double paragraph_fraction_max = 0;
  double paragraph_character_fraction_max = 0;
  double line_fraction_max = 0;
  double line_character_fraction_max = 0;
  double top_2_gram_fraction_max = 0;
  double top_3_gram_fraction_max = 0;
  double top_4_gram_fraction_max = 0;
  double repeated_5_gram_fraction_max = 0;
  double repeated_6_gram_fraction_max = 0;
  double repeated_7_gram_fraction_max = 0;
  double repeated_8_gram_fraction_max = 0;
  double repeated_9_gram_fraction_max = 0;
  double repeated_10_gram_fraction_max = 0;
};

struct StopWordsConfig {
  std::string language;
  std::vector<std::string> words;
};

struct GopherQualityConfig {
  double words_min = 0;
  double words_max = 0;
  double mean_word_characters_min = 0;
  double mean_word_characters_max = 0;
  double hash_ratio_max = 0;
  double ellipsis_ratio_max = 0;
  double bullet_line_fraction_max = 0;
  double ellipsis_line_fraction_max = 0;
  double letter_word_fraction_min = 0;
  double stop_words_min = 0;
  std::vector<StopWordsConfig> stop_words;
};

struct C4Config {
  bool remove_citations = false;
  bool terminal_mark_required = false;
  bool drop_javascript_lines = false;
  bool drop_policy_lines = false;
  bool refuse_lorem_ipsum = false;
  bool refuse_curly_bracket = false;
  double sentences_min = 0;
  int64_t line_words_min = 0;
  int64_t word_characters_max = 0;
};

struct FineWebConfig {
  double terminal_line_fraction_min = 0;
  bool keep_without_terminal_lines = false;
  double short_line_fraction_max = 0;
  int64_t short_line_characters = 0;
  double repeated_line_character_fraction_max = 0;
  double line_ends_per_word_max = 0;
};

struct ParagraphConfig {
  int64_t paragraphs_min = 0;
  int64_t paragraph_characters_min = 0;
};

struct QualityConfig {
  std::string parity;  // "none", "datatrove"
  bool keep_measurements = false;
  std::optional<GopherRepetitionConfig> gopher_repetition;
  std::optional<GopherQualityConfig> gopher_quality;
  std::optional<C4Config> c4;
  std::optional<FineWebConfig> fineweb;
  std::optional<ParagraphConfig> paragraphs;
};

struct PerplexityModelConfig {
  std::string language;
  std::string arpa;
  std::optional<double> head_cutoff;
  std::optional<double> middle_cutoff;
};

struct PerplexityConfig {
  std::vector<PerplexityModelConfig> models;
  std::string unit;  // "words", "pieces"
  std::string tokenizer;
  bool normalize = false;
  double head_percentile = 0;
  double middle_percentile = 0;
  std::vector<std::string> keep;  // "head", "middle", "tail"
  std::optional<double> min;
  std::optional<double> max;
};

struct PiiRuleConfig {
  std::string type;
  std::string action;
  std::string replacement;
};

struct PiiConfig {
  std::string parity;  // "none", "datatrove"
  std::string action;
  std::vector<PiiRuleConfig> types;
  std::string key_file;
};

struct ExactDedupConfig {
  std::vector<std::string> units;  // "document", "paragraph", "line"
  int64_t bytes_min = 0;
};

struct NearDedupConfig {
  std::string parity;  // "none", "datatrove"
  int bands = 0;
  int rows = 0;
  int shingle_words = 0;
  uint64_t seed = 0;
  std::optional<double> jaccard_min;
};

struct LengthBalanceConfig {
  std::vector<int64_t> edges;
  std::vector<double> weights;
  double repeat_max = 0;
  std::optional<int64_t> tokens_target;
  uint64_t seed = 0;
};

struct MixWeightConfig {
  std::string group;
  double weight = 0;
};

struct MixConfig {
  std::string by;  // "source", "language"
  std::string method;  // "proportional", "explicit", "temperature", "unimax"
  std::vector<MixWeightConfig> weights;
  double alpha = 0;
  double epochs_max = 0;
  int64_t budget_tokens = 0;
};

struct PackConfig {
  int sequence_length = 0;
  std::string long_documents;  // "cut", "truncate"
  int64_t window_tokens = 0;
};

struct CorpusConfig {
  std::string name;
  std::string output;
  std::string memory;  // a size: "2G"
  int threads = 0;  // 0: one a core
  int workers = 0;  // processes
  std::vector<CorpusSourceConfig> sources;
  ReadConfig read;
  NormalizeConfig normalize;
  std::optional<LanguageConfig> language;
  std::optional<QualityConfig> quality;
  std::optional<PerplexityConfig> perplexity;
  std::optional<PiiConfig> pii;
  std::optional<ExactDedupConfig> exact_dedup;
  std::optional<NearDedupConfig> near_dedup;
  std::optional<LengthBalanceConfig> length_balance;
  std::optional<MixConfig> mix;
  std::string tokenizer;  // "byte" or a path
  std::optional<PackConfig> pack;
  double validation_fraction = 0;
};

// Pretty-printed JSON with every field.
std::string EncodeCorpusConfig(const CorpusConfig& config);

// InvalidArgument names the field that is missing, mistyped or unknown.
absl::StatusOr<CorpusConfig> DecodeCorpusConfig(absl::string_view json);

}  // namespace llmctl::contract
