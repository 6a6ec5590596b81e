#include "common/spec/duration.h"

#include <string>

#include <re2/re2.h>

#include "absl/strings/str_cat.h"

namespace llmctl::spec {

absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text) {
  constexpr absl::Duration kLongest = absl::Hours(10 * 366 * 24);
  static const RE2* const kForm = new RE2("(?:[0-9]{1,12}h)?(?:[0-9]{1,12}m)?(?:[0-9]{1,12}s)?(?:[0-9]{1,12}ms)?");
  absl::Duration duration;
  bool readable = !text.empty() && RE2::FullMatch(re2::StringPiece(text.data(), text.size()), *kForm) &&
                  absl::ParseDuration(text, &duration);
  if (!readable || duration <= absl::ZeroDuration() || duration > kLongest) {
    return absl::InvalidArgumentError(absl::StrCat("found \"", text, "\", expected ", kDurationForm));
  }
  return duration;
}

}  // namespace llmctl::spec
