#include "client/output/figures.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace llmctl::client {

std::string HumanCount(double count) {
  if (!std::isfinite(count)) return "-";
  if (count < 999.5) return absl::StrFormat("%.0f", count);
  if (count < 999.95e3) return absl::StrFormat("%.1fk", count / 1e3);
  if (count < 999.95e6) return absl::StrFormat("%.1fM", count / 1e6);
  return absl::StrFormat("%.1fG", count / 1e9);
}

std::string HumanDuration(absl::Duration duration) {
  if (duration == absl::InfiniteDuration() || duration < absl::ZeroDuration()) return "-";
  if (duration < absl::Seconds(10)) return absl::StrFormat("%.1fs", absl::ToDoubleSeconds(duration));
  int64_t seconds = absl::ToInt64Seconds(duration);
  if (seconds < 60) return absl::StrCat(seconds, "s");
  int64_t minutes = seconds / 60, hours = minutes / 60, days = hours / 24;
  if (minutes < 60) return absl::StrFormat("%dm%02ds", minutes, seconds % 60);
  if (hours < 24) return absl::StrFormat("%dh%02dm", hours, minutes % 60);
  return absl::StrFormat("%dd%02dh", days, hours % 24);
}

std::string FormatTime(int64_t unix_seconds) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixSeconds(unix_seconds), absl::UTCTimeZone());
}

std::string FormatLoss(double loss) { return std::isfinite(loss) ? absl::StrFormat("%.4f", loss) : "-"; }

}  // namespace llmctl::client
