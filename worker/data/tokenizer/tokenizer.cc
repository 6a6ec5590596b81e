#include "worker/data/tokenizer/tokenizer.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace llmctl::data {
namespace {

class ByteTokenizer : public Tokenizer {
 public:
  std::string name() const override { return "byte"; }
  int vocabulary_size() const override { return 260; }
  int end_of_document() const override { return 256; }

  void Encode(absl::string_view text, std::vector<int32_t>& out) const override {
    size_t at = out.size();
    out.resize(at + text.size());
    for (char c : text) out[at++] = static_cast<unsigned char>(c);
  }

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
  return absl::NotFoundError(absl::StrCat("no tokenizer is named \"", name, "\"; there is: byte"));
}

}  // namespace llmctl::data
