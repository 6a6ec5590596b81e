#include "worker/data/tokenizer/nfc.h"

#include <limits>

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>

#include "common/base/check.h"

namespace llmctl::data {
namespace {

const icu::Normalizer2& Form() {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* form = icu::Normalizer2::getNFCInstance(error);
  CHECK(U_SUCCESS(error)) << "ICU carries the data of NFC within itself: " << u_errorName(error);
  return *form;
}

icu::StringPiece Piece(absl::string_view text) {
  CHECK_LE(text.size(), size_t{std::numeric_limits<int32_t>::max()}) << "ICU's lengths have 32 bits";
  return icu::StringPiece(text.data(), static_cast<int32_t>(text.size()));
}

}  // namespace

bool IsNfc(absl::string_view text) {
  UErrorCode error = U_ZERO_ERROR;
  bool is = Form().isNormalizedUTF8(Piece(text), error);
  CHECK(U_SUCCESS(error)) << "only memory can fail: " << u_errorName(error);
  return is;
}

std::string ToNfc(absl::string_view text) {
  std::string out;
  icu::StringByteSink<std::string> sink(&out, static_cast<int32_t>(text.size()));
  UErrorCode error = U_ZERO_ERROR;
  Form().normalizeUTF8(0, Piece(text), sink, nullptr, error);
  CHECK(U_SUCCESS(error)) << "only memory can fail: " << u_errorName(error);
  return out;
}

}  // namespace llmctl::data
