#include <utility>

#include <nlohmann/json.hpp>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/base/status.h"
#include "common/json/strict_json.h"
#include "worker/data/tokenizer/byte_alphabet.h"
#include "worker/data/tokenizer/tokenizer_definition.h"

namespace llmctl::data {
namespace {

using nlohmann::json;

constexpr int64_t kTokensMax = 1 << 24;

// By its text in the file, which is in the byte alphabet but for added tokens.
using IdOfText = absl::flat_hash_map<std::string, int32_t>;

// Whether the field is there and not null; either way it counts as asked for.
bool IsSet(ObjectReader& reader, const char* key) { return reader.Has(key) && !reader.Raw(key).is_null(); }

void Require(ObjectReader& reader, const char* key, bool expected, absl::string_view why) {
  if (reader.Bool(key) != expected) {
    reader.Fail(key, absl::StrCat("only ", expected ? "true" : "false", " is supported: ", why));
  }
}

void RequireIfSet(ObjectReader& reader, const char* key, bool expected, absl::string_view why) {
  if (reader.Has(key)) Require(reader, key, expected, why);
}

void RefuseUnlessNull(ObjectReader& reader, const char* key, absl::string_view why) {
  if (IsSet(reader, key)) reader.Fail(key, absl::StrCat("only null is supported: ", why));
}

// What `key` of a BPE model holds when it is not in use: null or "".
void RefuseAffix(ObjectReader& reader, const char* key) {
  if (IsSet(reader, key) && !reader.String(key).empty()) {
    reader.Fail(key, "is not supported: tokens of a byte-level vocabulary have no affixes");
  }
}

// Flags of ByteLevel that have no bearing on ids; true or false must be there or nothing.
void ReadUnusedFlag(ObjectReader& reader, const char* key) {
  if (reader.Has(key)) reader.Bool(key);
}

bool ReadNormalizer(ObjectReader reader, bool may_nest) {
  std::string type = reader.String("type");
  bool nfc = type == "NFC";
  if (type == "Sequence" && may_nest) {
    for (ObjectReader& part : reader.Objects("normalizers")) nfc |= ReadNormalizer(part, /*may_nest=*/false);
  } else if (!nfc) {
    reader.Fail("type", absl::StrCat("the normalizer \"", type, "\" is not supported; there is: NFC"));
  }
  reader.Finish();
  return nfc;
}

// A pre-tokenizer that maps bytes to their alphabet, and cuts by GPT-2's pattern if `uses_pattern`.
void ReadByteLevel(ObjectReader& reader, bool uses_pattern, absl::string_view why) {
  Require(reader, "add_prefix_space", false, "a space that the text does not have would be encoded");
  ReadUnusedFlag(reader, "trim_offsets");
  bool use_regex = !reader.Has("use_regex") || reader.Bool("use_regex");
  if (use_regex != uses_pattern) reader.Fail("use_regex", why);
  reader.Finish();
}

Pattern ReadSplit(ObjectReader& reader) {
  if (reader.String("type") != "Split") reader.Fail("type", "expected Split, to be followed by ByteLevel");
  ObjectReader pattern = reader.Object("pattern");
  std::string regex = pattern.String("Regex");
  pattern.Finish();
  absl::optional<Pattern> known = PatternOfRegex(regex);
  if (!known) {
    pattern.Fail("Regex", absl::StrCat("this pattern is not supported; there are those of GPT-2, Llama 3 and Qwen: ",
                                       regex));
  }
  // The patterns leave nothing between their matches, so keeping only these is the same.
  std::string behavior = reader.String("behavior");
  bool invert = reader.Bool("invert");
  bool isolates = (behavior == "Isolated" && !invert) || (behavior == "Removed" && invert);
  if (!isolates) reader.Fail("behavior", "only Isolated, or Removed with invert, is supported");
  reader.Finish();
  return known.value_or(Pattern::kGpt2);
}

Pattern ReadPreTokenizer(ObjectReader reader) {
  std::string type = reader.String("type");
  if (type == "ByteLevel") {
    ReadByteLevel(reader, /*uses_pattern=*/true, "must be true where no Split stands before ByteLevel");
    return Pattern::kGpt2;
  }
  if (type != "Sequence") {
    reader.Fail("type", absl::StrCat("the pre-tokenizer \"", type,
                                     "\" is not supported; there are ByteLevel, and Sequence of Split and ByteLevel"));
    return Pattern::kGpt2;
  }
  std::vector<ObjectReader> parts = reader.Objects("pretokenizers");
  reader.Finish();
  if (parts.size() != 2) {
    reader.Fail("pretokenizers", absl::StrCat("expected Split and ByteLevel, found ", parts.size(), " parts"));
    return Pattern::kGpt2;
  }
  Pattern pattern = ReadSplit(parts[0]);
  if (parts[1].String("type") != "ByteLevel") parts[1].Fail("type", "expected ByteLevel after Split");
  ReadByteLevel(parts[1], /*uses_pattern=*/false, "must be false after Split: two patterns one after the other");
  return pattern;
}

void ReadPostProcessor(ObjectReader reader, bool may_nest) {
  std::string type = reader.String("type");
  if (type == "ByteLevel") {
    for (const char* flag : {"add_prefix_space", "trim_offsets", "use_regex"}) ReadUnusedFlag(reader, flag);
  } else if (type == "TemplateProcessing") {
    for (const char* part : {"single", "pair", "special_tokens"}) reader.Raw(part);
  } else if (type == "Sequence" && may_nest) {
    for (const ObjectReader& part : reader.Objects("processors")) ReadPostProcessor(part, /*may_nest=*/false);
  } else {
    reader.Fail("type", absl::StrCat("the post-processor \"", type,
                                     "\" is not supported; there are ByteLevel and TemplateProcessing"));
  }
  reader.Finish();
}

void ReadDecoder(ObjectReader reader) {
  std::string type = reader.String("type");
  if (type != "ByteLevel") {
    reader.Fail("type", absl::StrCat("the decoder \"", type, "\" is not supported; ByteLevel is"));
  }
  for (const char* flag : {"add_prefix_space", "trim_offsets", "use_regex"}) ReadUnusedFlag(reader, flag);
  reader.Finish();
}

// $.model.vocab: texts by id, which must be 0, 1, 2, ... without holes. False after an error.
bool ReadVocabulary(ObjectReader& model, std::vector<std::string>& texts, IdOfText& ids) {
  const json& vocabulary = model.Raw("vocab");
  if (!vocabulary.is_object() || vocabulary.empty() || vocabulary.size() > kTokensMax) {
    model.Fail("vocab", absl::StrCat("expected an object of 1 to ", kTokensMax, " tokens"));
    return false;
  }
  texts.resize(vocabulary.size());
  std::vector<bool> taken(vocabulary.size());
  for (const auto& [text, id] : vocabulary.items()) {
    std::string where = absl::StrCat("vocab[\"", text, "\"]");
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= texts.size()) {
      model.Fail(where.c_str(), absl::StrCat("expected an id below the number of tokens, ", texts.size(), ", found ",
                                             JsonText(id, false)));
      return false;
    }
    int32_t number = id.get<int32_t>();
    if (taken[number]) {
      model.Fail(where.c_str(), absl::StrCat("the id ", number, " is that of \"", texts[number], "\" too"));
      return false;
    }
    if (text.empty()) {
      model.Fail(where.c_str(), "a token must not be empty");
      return false;
    }
    taken[number] = true;
    texts[number] = text;
    ids.emplace(text, number);
  }
  return true;
}

class MergeReader {
 public:
  MergeReader(ObjectReader& model, const IdOfText& ids) : model_(model), ids_(ids) {}

  std::vector<Merge> Read() {
    std::vector<Merge> merges;
    const json& list = model_.Raw("merges");
    if (!list.is_array()) model_.Fail("merges", "expected an array");
    if (!list.is_array()) return {};
    for (const json& element : list) {
      at_ = absl::StrCat("merges[", merges.size(), "]");
      Merge merge;
      if (!ReadOne(element, merge)) return {};
      if (!pairs_.insert({merge.left, merge.right}).second) {
        Fail("the pair occurs twice");
        return {};
      }
      merges.push_back(merge);
    }
    return merges;
  }

 private:
  bool Fail(absl::string_view problem) {
    model_.Fail(at_.c_str(), problem);
    return false;
  }

  bool ReadOne(const json& element, Merge& merge) {
    std::string left, right;
    if (!ReadPair(element, left, right)) return false;
    return Find(left, merge.left) && Find(right, merge.right) && Find(left + right, merge.result);
  }

  // "a b" or ["a", "b"].
  bool ReadPair(const json& element, std::string& left, std::string& right) {
    if (element.is_array() && element.size() == 2 && element[0].is_string() && element[1].is_string()) {
      left = element[0].get<std::string>();
      right = element[1].get<std::string>();
      return true;
    }
    if (!element.is_string()) return Fail("expected \"a b\" or [\"a\", \"b\"]");
    const std::string& text = element.get_ref<const std::string&>();
    size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
      return Fail(absl::StrCat("expected two tokens with one space between, found \"", text, "\""));
    }
    left = text.substr(0, space);
    right = text.substr(space + 1);
    return true;
  }

  bool Find(const std::string& text, int32_t& id) {
    auto found = ids_.find(text);
    if (found == ids_.end()) return Fail(absl::StrCat("\"", text, "\" is not in the vocabulary"));
    id = found->second;
    return true;
  }

  ObjectReader& model_;
  const IdOfText& ids_;
  std::string at_;
  absl::flat_hash_set<std::pair<int32_t, int32_t>> pairs_;
};

// $.model but for its tokens.
void ReadModelSettings(ObjectReader& model, TokenizerDefinition& out) {
  // Files older than the field have none, and a model with merges is BPE.
  if (model.Has("type") && model.String("type") != "BPE") model.Fail("type", "only BPE is supported");
  if (IsSet(model, "dropout") && model.Number("dropout") != 0) {
    model.Fail("dropout", "is not supported: the same text must give the same ids");
  }
  // With all bytes in the vocabulary nothing is unknown, so these have no bearing.
  if (IsSet(model, "unk_token")) model.String("unk_token");
  ReadUnusedFlag(model, "fuse_unk");
  RefuseAffix(model, "continuing_subword_prefix");
  RefuseAffix(model, "end_of_word_suffix");
  RequireIfSet(model, "byte_fallback", false, "a byte-level vocabulary has every byte as a token");
  out.ignore_merges = model.Has("ignore_merges") && model.Bool("ignore_merges");
}

void ReadAddedTokens(ObjectReader& root, const IdOfText& ids, TokenizerDefinition& out) {
  absl::flat_hash_set<std::string> seen;
  for (ObjectReader& reader : root.Objects("added_tokens")) {
    AddedToken token;
    token.id = static_cast<int32_t>(reader.Integer("id", 0, kTokensMax));
    token.content = reader.String("content");
    token.special = reader.Bool("special");
    token.normalized = reader.Bool("normalized");
    for (const char* flag : {"single_word", "lstrip", "rstrip"}) {
      Require(reader, flag, false, "added tokens are matched as they stand, and nothing around them");
    }
    reader.Finish();
    if (token.content.empty()) reader.Fail("content", "an added token must not be empty");
    if (!seen.insert(token.content).second) reader.Fail("content", "occurs twice among the added tokens");
    // The id that Hugging Face's library gives it on loading.
    auto found = ids.find(token.content);
    int32_t expected = found != ids.end() ? found->second : out.vocabulary_size();
    if (token.id != expected) {
      absl::string_view which = found != ids.end() ? ", the id in model.vocab" : ", the next";
      reader.Fail("id", absl::StrCat("expected ", expected, which, ", found ", token.id));
      return;
    }
    if (found == ids.end()) out.tokens.emplace_back();
    out.tokens[token.id] = token.content;
    out.added.push_back(std::move(token));
  }
}

// The model's tokens from the byte alphabet to bytes. Those that are added tokens too stay as they are, and must mean
// the same in both, or what text was encoded would not be what is decoded.
void ReadBytes(ObjectReader& model, const std::vector<std::string>& texts, TokenizerDefinition& out) {
  std::vector<const AddedToken*> added(out.tokens.size());
  for (const AddedToken& token : out.added) added[token.id] = &token;
  for (size_t id = 0; id < texts.size(); ++id) {
    absl::optional<std::string> bytes = FromByteAlphabet(texts[id]);
    bool is_mark = added[id] != nullptr && added[id]->special;
    bool is_meant = added[id] == nullptr ? bytes.has_value() : bytes == texts[id];
    if (!is_mark && !is_meant) {
      model.Fail(absl::StrCat("vocab[\"", texts[id], "\"]").c_str(),
                 added[id] == nullptr ? "has a character that is not of the byte-level alphabet, and is no added token"
                                      : "is an added token too, but stands for other bytes here");
      return;
    }
    if (added[id] == nullptr) out.tokens[id] = *std::move(bytes);
  }
}

// Plain text must be encodable, and never to a special.
void CheckReach(ObjectReader& model, const IdOfText& ids, const TokenizerDefinition& out) {
  std::vector<bool> special(out.tokens.size());
  for (const AddedToken& token : out.added) special[token.id] = token.special;
  for (int byte = 0; byte < 256; ++byte) {
    std::string text = ToByteAlphabet(std::string(1, static_cast<char>(byte)));
    auto found = ids.find(text);
    if (found == ids.end() || special[found->second]) {
      model.Fail("vocab",
                 absl::StrFormat("the byte 0x%02X (\"%s\") must be a token, and not a special one", byte, text));
      return;
    }
  }
  for (size_t i = 0; i < out.merges.size(); ++i) {
    if (!special[out.merges[i].result]) continue;
    model.Fail(absl::StrCat("merges[", i, "]").c_str(), "makes a special token out of text");
    return;
  }
}

void ReadRoot(ObjectReader& root, TokenizerDefinition& out) {
  if (root.String("version") != "1.0") root.Fail("version", "expected \"1.0\"");
  RefuseUnlessNull(root, "truncation", "documents are encoded whole");
  RefuseUnlessNull(root, "padding", "documents are encoded as they are");
  if (IsSet(root, "normalizer")) out.nfc = ReadNormalizer(root.Object("normalizer"), /*may_nest=*/true);
  out.pattern = ReadPreTokenizer(root.Object("pre_tokenizer"));
  if (IsSet(root, "post_processor")) ReadPostProcessor(root.Object("post_processor"), /*may_nest=*/true);
  ReadDecoder(root.Object("decoder"));
  ObjectReader model = root.Object("model");
  ReadModelSettings(model, out);
  std::vector<std::string> texts;
  IdOfText ids;
  if (!ReadVocabulary(model, texts, ids)) return;
  out.model_tokens = static_cast<int32_t>(texts.size());
  out.tokens.resize(texts.size());
  out.merges = MergeReader(model, ids).Read();
  model.Finish();
  ReadAddedTokens(root, ids, out);
  ReadBytes(model, texts, out);
  CheckReach(model, ids, out);
  root.Finish();
}

}  // namespace

absl::StatusOr<TokenizerDefinition> ParseTokenizerJson(absl::string_view text, absl::string_view what) {
  LLM_ASSIGN_OR_RETURN(json value, ParseStrictJson(text, what));
  JsonErrors errors;
  ObjectReader root(value, "$", errors);
  TokenizerDefinition out;
  ReadRoot(root, out);
  if (!errors.status().ok()) return Annotate(errors.status(), what);
  return out;
}

}  // namespace llmctl::data
