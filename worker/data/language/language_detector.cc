#include "worker/data/language/language_detector.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/base/status.h"
#include "worker/data/language/cld2_detector.h"
#include "worker/data/language/fasttext_detector.h"
#include "worker/data/language/language_label.h"

namespace llmctl::data {
namespace {

// A language that is never named would drop every document, and nobody would know why.
absl::Status CheckKept(const LanguageSettings& settings, const std::vector<std::string>& labels) {
  std::vector<std::string> unknown;
  for (const auto& [language, threshold] : settings.keep) {
    bool known = false;
    for (const std::string& label : labels) known = known || IsLanguageIn(label, language);
    if (!known) unknown.push_back(language);
  }
  if (unknown.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("language: keep: ", DetectorName(settings.detector), " never names ",
                                                 absl::StrJoin(unknown, ", "), "; it names ",
                                                 absl::StrJoin(labels, " ")));
}

absl::string_view CutAtCharacter(absl::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  size_t end = bytes_max;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace

LanguageDetector::LanguageDetector(const LanguageSettings& settings, std::string name)
    : name_(std::move(name)), bytes_max_(settings.whole_text ? kWholeTextBytesMax : kSampleBytes) {}

absl::StatusOr<std::unique_ptr<const LanguageDetector>> LanguageDetector::Create(const LanguageSettings& settings) {
  LLM_RETURN_IF_ERROR(settings.Validate());
  if (settings.detector == LanguageDetectorKind::kCld2) {
    auto detector = std::make_unique<Cld2Detector>(settings);
    LLM_RETURN_IF_ERROR(CheckKept(settings, detector->Labels()));
    return detector;
  }
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<FastTextDetector> detector, FastTextDetector::Load(settings));
  LLM_RETURN_IF_ERROR(CheckKept(settings, detector->Labels()));
  return detector;
}

LanguageGuess LanguageDetector::Detect(absl::string_view text, LanguageScratch& scratch) const {
  return DetectSample(CutAtCharacter(text, bytes_max_), scratch);
}

std::string LanguageDetector::Identity() const { return absl::StrCat(name_, ", first ", bytes_max_, " bytes"); }

}  // namespace llmctl::data
