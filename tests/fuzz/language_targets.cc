#include "tests/fuzz/language_targets.h"

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/check.h"
#include "worker/data/language/fasttext_detector.h"
#include "worker/data/language/fasttext_model_check.h"
#include "worker/data/language/language_detector.h"
#include "worker/data/normalize/utf8_repair.h"

namespace llmctl::fuzz {
namespace {

void CheckGuess(const data::LanguageGuess& guess) {
  CHECK(!guess.label.empty());
  CHECK(guess.score >= 0 && guess.score <= 1) << guess.score;
  // CLD2 may give most of a text to no language, and of that no score.
  CHECK(guess.second_score >= 0 && guess.second_score <= 1) << guess.second_score;
  if (guess.label != "und") CHECK_LE(guess.second_score, guess.score);
}

constexpr size_t kLossAt = 32;
constexpr char kNegativeSampling = 2;

// What passes the check, the library must load and ask without harm.
void RunFastTextModel(absl::string_view bytes) {
  if (!data::CheckFastTextModel(bytes).ok()) return;
  // It makes the library fill a table of ten million numbers, which takes all the time there is.
  if (bytes[kLossAt] == kNegativeSampling) return;
  auto detector = data::FastTextDetector::Make({}, std::string(bytes));
  CHECK(detector.ok()) << detector.status().message();
  std::unique_ptr<data::LanguageScratch> scratch = (*detector)->MakeScratch();
  for (absl::string_view text : {"ab", "ab abc xyz", "\xd0\xb6 unseen words", ""}) {
    CheckGuess((*detector)->Detect(text, *scratch));
  }
}

// CLD2 is C++ of its time, and reads what anybody wrote: any valid UTF-8 must do it no harm.
void RunCld2(absl::string_view bytes) {
  static const auto* const detector = data::LanguageDetector::Create({.whole_text = true})->release();
  std::string text(bytes);
  data::ReplaceInvalidUtf8(text);
  std::unique_ptr<data::LanguageScratch> scratch = detector->MakeScratch();
  data::LanguageGuess guess = detector->Detect(text, *scratch);
  CheckGuess(guess);
  CHECK(guess == detector->Detect(text, *scratch));
}

class ModelBytes {
 public:
  template <typename T>
  ModelBytes& Add(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  ModelBytes& AddInts(std::initializer_list<int32_t> values) {
    for (int32_t value : values) Add(value);
    return *this;
  }
  ModelBytes& AddWeights(int count) {
    for (int i = 0; i < count; ++i) Add(0.25f * static_cast<float>(i % 7 - 3));
    return *this;
  }
  ModelBytes& AddWord(absl::string_view word, bool is_label) {
    bytes_.append(word.data(), word.size());
    return Add('\0').Add(int64_t{9}).Add(is_label);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Two words, two labels, n-grams of two characters in three buckets, weights of two columns.
std::string ModelSeed(bool quantized) {
  ModelBytes model;
  model.AddInts({793712314, 12, 2, 5, 5, 1, 5, 1, /*loss=*/quantized ? 1 : 3, 3, /*bucket=*/3, 2, 2, 100}).Add(1e-4);
  model.AddInts({4, 2, 2}).Add(int64_t{36}).Add(int64_t{quantized ? 1 : -1});
  model.AddWord("</s>", false).AddWord("ab", false).AddWord("__label__en", true).AddWord("__label__de", true);
  if (quantized) model.AddInts({1, 0});
  model.Add(quantized);
  if (quantized) {
    // Norms, rows, columns; a code for each row, of a codebook of both columns, and the same for the norms.
    model.Add(true).Add(int64_t{3}).Add(int64_t{2}).Add(int32_t{3}).Add('\1').Add('\2').Add('\3');
    model.AddInts({2, 1, 2, 2}).AddWeights(512).Add('\4').Add('\5').Add('\6').AddInts({1, 1, 1, 1}).AddWeights(256);
  } else {
    model.Add(int64_t{5}).Add(int64_t{2}).AddWeights(10);
  }
  model.Add(false).Add(int64_t{2}).Add(int64_t{2}).AddWeights(4);
  return model.bytes();
}

}  // namespace

std::vector<Target> LanguageTargets() {
  for (bool quantized : {false, true}) {
    absl::Status status = data::CheckFastTextModel(ModelSeed(quantized));
    CHECK(status.ok()) << status.message();
  }
  return {
      {"fasttext_model", RunFastTextModel, {ModelSeed(false), ModelSeed(true)}},
      {"cld2",
       RunCld2,
       {"The ship leaves the harbour in the morning. Der Hafen liegt an der See und ist alt.",
        "\xe4\xb8\xad\xe6\x96\x87 \xd0\xba\xd0\xbe\xd1\x80\xd0\xb0\xd0\xb1\xd0\xbb\xd1\x8c &amp; <b>a</b> \x01"}},
  };
}

}  // namespace llmctl::fuzz
