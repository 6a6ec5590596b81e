#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

#include "common/json/strict_json.h"
#include "worker/data/tokenizer/byte_alphabet.h"
#include "worker/data/tokenizer/tokenizer_definition.h"

namespace llmctl::data {
namespace {

using Json = nlohmann::ordered_json;

Json ByteLevel(bool add_prefix_space, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

Json AddedTokens(const TokenizerDefinition& definition) {
  Json out = Json::array();
  for (const AddedToken& token : definition.added) {
    out.push_back({{"id", token.id},
                   {"content", token.content},
                   {"single_word", false},
                   {"lstrip", false},
                   {"rstrip", false},
                   {"normalized", token.normalized},
                   {"special", token.special}});
  }
  return out;
}

Json PreTokenizerJson(Pattern pattern) {
  if (pattern == Pattern::kGpt2) return ByteLevel(/*add_prefix_space=*/false, /*use_regex=*/true);
  Json split = {{"type", "Split"},
                {"pattern", {{"Regex", std::string(PatternRegex(pattern))}}},
                {"behavior", "Isolated"},
                {"invert", false}};
  Json parts = Json::array({split, ByteLevel(/*add_prefix_space=*/false, /*use_regex=*/false)});
  return {{"type", "Sequence"}, {"pretokenizers", parts}};
}

// The texts of the model's tokens, by id.
std::vector<std::string> ModelTexts(const TokenizerDefinition& definition) {
  std::vector<std::string> texts;
  texts.reserve(definition.model_tokens);
  for (int32_t id = 0; id < definition.model_tokens; ++id) texts.push_back(ToByteAlphabet(definition.tokens[id]));
  for (const AddedToken& token : definition.added) {
    if (token.id < definition.model_tokens) texts[token.id] = token.content;
  }
  return texts;
}

Json Model(const TokenizerDefinition& definition) {
  Json model = {{"type", "BPE"},
                {"dropout", nullptr},
                {"unk_token", nullptr},
                {"continuing_subword_prefix", nullptr},
                {"end_of_word_suffix", nullptr},
                {"fuse_unk", false},
                {"byte_fallback", false},
                {"ignore_merges", definition.ignore_merges}};
  std::vector<std::string> texts = ModelTexts(definition);
  // An ordered object looks for a key by walking: filled as the list of pairs that it is.
  Json::object_t vocabulary;
  vocabulary.reserve(texts.size());
  for (size_t id = 0; id < texts.size(); ++id) vocabulary.Container::emplace_back(texts[id], id);
  model["vocab"] = std::move(vocabulary);
  Json merges = Json::array();
  for (const Merge& merge : definition.merges) merges.push_back({texts[merge.left], texts[merge.right]});
  model["merges"] = std::move(merges);
  return model;
}

}  // namespace

std::string TokenizerJsonText(const TokenizerDefinition& definition) {
  Json root = {{"version", "1.0"},
               {"truncation", nullptr},
               {"padding", nullptr},
               {"added_tokens", AddedTokens(definition)},
               {"normalizer", definition.nfc ? Json{{"type", "NFC"}} : Json(nullptr)},
               {"pre_tokenizer", PreTokenizerJson(definition.pattern)},
               {"post_processor", nullptr},
               {"decoder", ByteLevel(/*add_prefix_space=*/true, /*use_regex=*/true)},
               {"model", Model(definition)}};
  return root.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace llmctl::data
