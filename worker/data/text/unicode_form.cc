#include "worker/data/text/unicode_form.h"

#include <limits>

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>

#include "common/base/check.h"

namespace llmctl::data {
namespace {

const icu::Normalizer2& Instance(UnicodeForm form) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* instance = form == UnicodeForm::kNfc ? icu::Normalizer2::getNFCInstance(error)
                                                               : icu::Normalizer2::getNFKCInstance(error);
  CHECK(U_SUCCESS(error)) << "ICU carries the data of its forms within itself: " << u_errorName(error);
  return *instance;
}

icu::StringPiece Piece(absl::string_view text) {
  CHECK_LE(text.size(), size_t{std::numeric_limits<int32_t>::max()}) << "ICU's lengths have 32 bits";
  return icu::StringPiece(text.data(), static_cast<int32_t>(text.size()));
}

}  // namespace

bool IsInForm(UnicodeForm form, absl::string_view text) {
  if (form == UnicodeForm::kNone) return true;
  UErrorCode error = U_ZERO_ERROR;
  bool is = Instance(form).isNormalizedUTF8(Piece(text), error);
  CHECK(U_SUCCESS(error)) << "only memory can fail: " << u_errorName(error);
  return is;
}

std::string ToForm(UnicodeForm form, absl::string_view text) {
  if (form == UnicodeForm::kNone) return std::string(text);
  std::string out;
  icu::StringByteSink<std::string> sink(&out, static_cast<int32_t>(text.size()));
  UErrorCode error = U_ZERO_ERROR;
  Instance(form).normalizeUTF8(0, Piece(text), sink, nullptr, error);
  CHECK(U_SUCCESS(error)) << "only memory can fail: " << u_errorName(error);
  return out;
}

}  // namespace llmctl::data
