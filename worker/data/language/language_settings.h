// Which languages a corpus keeps, and who tells them apart.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace llmctl::data {

enum class LanguageDetectorKind {
  kCld2,      // built in: about 160 languages; the score is the language's share of the text's letters
  kFastText,  // a model file: the score is the model's probability
};

// "cld2", "fasttext".
absl::string_view DetectorName(LanguageDetectorKind kind);

struct LanguageSettings {
  LanguageDetectorKind detector = LanguageDetectorKind::kCld2;
  // fastText's: lid.176.ftz, lid.176.bin or any other supervised model whose labels are languages.
  std::string model_file;
  // Labels as LanguageLabel writes them, each with a threshold of its own or the one below. "zh" stands for "zh-Hant"
  // too, unless that is here itself. Empty: every language.
  std::map<std::string, std::optional<double>, std::less<>> keep;
  // A document whose score is lower is dropped. datatrove 0.10.1, and RefinedWeb: https://arxiv.org/abs/2306.01116.
  double threshold = 0.65;
  bool keep_unknown = false;
  // Of a document the first kSampleBytes are looked at; all of it (up to kWholeTextBytesMax) is much slower.
  bool whole_text = false;

  // All faults in one message.
  absl::Status Validate() const;
};

// Both are cut at the end of a character.
inline constexpr size_t kSampleBytes = size_t{8} << 10;
// fastText keeps about ten times the text in memory, and CLD2's sums overflow at 21 MB.
inline constexpr size_t kWholeTextBytesMax = size_t{4} << 20;

}  // namespace llmctl::data
