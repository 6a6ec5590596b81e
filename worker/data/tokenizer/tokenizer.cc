#include "worker/data/tokenizer/tokenizer.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "worker/data/tokenizer/bpe_tokenizer.h"

namespace llmctl::data {
namespace {

class ByteEncoder : public TextEncoder {
 public:
  void Encode(absl::string_view text, std::vector<int32_t>& out) override {
    size_t at = out.size();
    out.resize(at + text.size());
    for (char c : text) out[at++] = static_cast<unsigned char>(c);
  }
};

class ByteTokenizer : public Tokenizer {
 public:
  std::string name() const override { return "byte"; }
  std::string digest() const override { return "byte"; }
  int vocabulary_size() const override { return 260; }
  int end_of_document() const override { return 256; }
  std::unique_ptr<TextEncoder> MakeEncoder() const override { return std::make_unique<ByteEncoder>(); }

  std::string Decode(const std::vector<int32_t>& tokens) const override {
    std::string out;
    out.reserve(tokens.size());
    for (int32_t token : tokens) {
      if (token >= 0 && token < 256) out.push_back(static_cast<char>(token));
    }
    return out;
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(absl::string_view name) {
  if (name == "byte") return std::make_unique<ByteTokenizer>();
  if (absl::EndsWith(name, ".json")) return ReadBpeTokenizer(std::string(name), BpeOptions());
  return absl::NotFoundError(
      absl::StrCat("no tokenizer is named \"", name, "\"; there is: byte, or the path of a tokenizer.json"));
}

}  // namespace llmctl::data
