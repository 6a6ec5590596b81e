#include "worker/data/tokenizer/bpe_tokenizer.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/data/text/unicode_form.h"
#include "worker/data/tokenizer/bpe_encoder.h"

namespace llmctl::data {
namespace {

// GPT-2 and Qwen, Llama 3.
constexpr absl::string_view kUsualEnds[] = {"<|endoftext|>", "<|end_of_text|>"};

bool IsRecognized(const AddedToken& token, AddedTokensInText policy) {
  switch (policy) {
    case AddedTokensInText::kPlain: return false;
    case AddedTokensInText::kSpecialsPlain: return !token.special;
    case AddedTokensInText::kRecognized: return true;
  }
  return false;
}

std::string SpecialNames(const TokenizerDefinition& definition) {
  std::string names;
  for (const AddedToken& token : definition.added) {
    if (token.special) absl::StrAppend(&names, names.empty() ? "" : ", ", token.content);
  }
  return names.empty() ? "none" : names;
}

absl::StatusOr<int32_t> UsualEnd(const BpeTokenizer& tokenizer) {
  absl::StatusOr<int32_t> end = absl::NotFoundError("");
  for (absl::string_view name : kUsualEnds) {
    absl::StatusOr<int32_t> id = tokenizer.SpecialId(name);
    if (id.ok() && end.ok()) return absl::NotFoundError("both usual ends of a document are there: say which is meant");
    if (id.ok()) end = id;
  }
  if (end.ok()) return end;
  return absl::NotFoundError(absl::StrCat("which special token ends a document? None of the usual (", kUsualEnds[0],
                                          ", ", kUsualEnds[1], ") is there; there are: ",
                                          SpecialNames(tokenizer.definition())));
}

}  // namespace

BpeTokenizer::BpeTokenizer(TokenizerDefinition definition, const BpeOptions& options)
    : definition_(std::move(definition)),
      encoder_cache_(options.encoder_cache),
      pre_tokenizer_(definition_.pattern),
      merges_(definition_),
      special_(definition_.tokens.size()) {
  for (const AddedToken& token : definition_.added) {
    special_[token.id] = token.special;
    if (!IsRecognized(token, options.added_tokens)) continue;
    if (!token.normalized) {
      added_.Add(token.content, token.id);
    } else {
      UnicodeForm form = definition_.nfc ? UnicodeForm::kNfc : UnicodeForm::kNone;
      added_normalized_.Add(ToForm(form, token.content), token.id);
    }
  }
  if (!definition_.ignore_merges) return;
  for (int32_t id = 0; id < definition_.model_tokens; ++id) {
    if (!special_[id]) whole_pieces_.emplace(definition_.tokens[id], id);
  }
}

absl::StatusOr<std::unique_ptr<BpeTokenizer>> BpeTokenizer::Create(TokenizerDefinition definition,
                                                                   const BpeOptions& options) {
  std::unique_ptr<BpeTokenizer> tokenizer(new BpeTokenizer(std::move(definition), options));
  absl::StatusOr<int32_t> end =
      options.end_of_document.empty() ? UsualEnd(*tokenizer) : tokenizer->SpecialId(options.end_of_document);
  if (!end.ok()) return Annotate(end.status(), "end of document");
  tokenizer->end_of_document_ = *end;
  tokenizer->digest_ = Sha256(absl::StrCat(TokenizerJsonText(tokenizer->definition_), "\nend of document ", *end,
                                           "\nadded tokens in text ", static_cast<int>(options.added_tokens)));
  return tokenizer;
}

absl::StatusOr<int32_t> BpeTokenizer::SpecialId(absl::string_view name) const {
  for (const AddedToken& token : definition_.added) {
    if (token.special && token.content == name) return token.id;
  }
  return absl::NotFoundError(
      absl::StrCat("there is no special token \"", name, "\"; there are: ", SpecialNames(definition_)));
}

std::unique_ptr<TextEncoder> BpeTokenizer::MakeEncoder() const { return std::make_unique<BpeEncoder>(*this); }

std::string BpeTokenizer::Decode(const std::vector<int32_t>& tokens) const {
  std::string out;
  for (int32_t token : tokens) {
    if (token >= 0 && token < vocabulary_size() && !special_[token]) out += definition_.tokens[token];
  }
  return out;
}

absl::StatusOr<std::unique_ptr<BpeTokenizer>> ReadBpeTokenizer(const std::string& path, const BpeOptions& options) {
  LLM_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  LLM_ASSIGN_OR_RETURN(TokenizerDefinition definition, ParseTokenizerJson(text, path));
  absl::StatusOr<std::unique_ptr<BpeTokenizer>> tokenizer = BpeTokenizer::Create(std::move(definition), options);
  if (!tokenizer.ok()) return Annotate(tokenizer.status(), "tokenizer ", path);
  return tokenizer;
}

}  // namespace llmctl::data
