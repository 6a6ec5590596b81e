#include "worker/data/perplexity/model_text.h"

#include <array>

#include "common/base/check.h"
#include "worker/data/perplexity/line_normalizer.h"
#include "worker/data/tokenizer/byte_alphabet.h"

namespace llmctl::data {
namespace {

// The C library's isspace() without a locale, and NUL: what KenLM's programs take for the space between words.
constexpr std::array<bool, 256> MakeSpaces() {
  std::array<bool, 256> spaces{};
  for (char c : {'\0', ' ', '\t', '\n', '\v', '\f', '\r'}) spaces[static_cast<uint8_t>(c)] = true;
  return spaces;
}
constexpr std::array<bool, 256> kSpaces = MakeSpaces();
bool IsSpace(char c) { return kSpaces[static_cast<uint8_t>(c)]; }

bool IsBlank(absl::string_view line) {
  for (char c : line) {
    if (!IsSpace(c)) return false;
  }
  return true;
}

void SplitAtSpace(absl::string_view line, std::vector<absl::string_view>& words) {
  const char* at = line.data();
  const char* const end = at + line.size();
  while (true) {
    while (at < end && IsSpace(*at)) ++at;
    if (at == end) return;
    const char* word = at;
    while (at < end && !IsSpace(*at)) ++at;
    words.emplace_back(word, at - word);
  }
}

}  // namespace

ModelText::ModelText(const ModelTextSettings& settings, const BpeTokenizer* tokenizer)
    : settings_(settings), tokenizer_(tokenizer) {
  if (settings_.unit == ModelUnit::kWords) return;
  CHECK(tokenizer_ != nullptr) << "pieces are those of a tokenizer";
  pieces_.reserve(tokenizer_->definition().tokens.size());
  for (const std::string& token : tokenizer_->definition().tokens) pieces_.push_back(ToByteAlphabet(token));
}

ModelTextReader::ModelTextReader(const ModelText& text) : text_(text) {
  if (text.settings_.unit == ModelUnit::kPieces) encoder_ = text.tokenizer_->MakeEncoder();
}

void ModelTextReader::Start(absl::string_view document) {
  rest_ = document;
  more_ = !document.empty();
}

bool ModelTextReader::NextLine(std::vector<absl::string_view>& words) {
  words.clear();
  while (more_) {
    const size_t end = rest_.find('\n');
    absl::string_view line = rest_.substr(0, end);
    more_ = end != absl::string_view::npos;
    if (more_) rest_.remove_prefix(end + 1);
    if (text_.settings_.skip_blank_lines && IsBlank(line)) continue;
    Split(line, words);
    return true;
  }
  return false;
}

void ModelTextReader::Split(absl::string_view line, std::vector<absl::string_view>& words) {
  if (text_.settings_.normalize) {
    NormalizeLine(line, normalized_);
    line = normalized_;
  }
  if (text_.settings_.unit == ModelUnit::kWords) return SplitAtSpace(line, words);
  ids_.clear();
  encoder_->Encode(line, ids_);
  words.reserve(ids_.size());
  for (int32_t id : ids_) words.push_back(text_.pieces_[id]);
}

}  // namespace llmctl::data
