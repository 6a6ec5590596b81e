#include "worker/data/tokenizer/word_counts.h"

#include "common/base/check.h"
#include "worker/data/text/unicode_form.h"

namespace llmctl::data {

void WordCounts::AddText(absl::string_view text) {
  std::string normalized;
  if (nfc_ && !IsInForm(UnicodeForm::kNfc, text)) {
    normalized = ToForm(UnicodeForm::kNfc, text);
    text = normalized;
  }
  const char* end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const char* next = pre_tokenizer_.PieceEnd(at, end);
    size_t bytes = static_cast<size_t>(next - at);
    if (bytes <= Key::kBytesMax) {
      ++short_[Key::Of(at, bytes, end)];
    } else {
      ++long_[absl::string_view(at, bytes)];
    }
    at = next;
  }
}

void WordCounts::Add(const WordCounts& other) {
  CHECK(pattern() == other.pattern() && nfc_ == other.nfc_) << "the two count different things";
  for (const auto& [key, count] : other.short_) short_[key] += count;
  for (const auto& [word, count] : other.long_) long_[word] += count;
}

}  // namespace llmctl::data
