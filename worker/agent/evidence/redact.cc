#include "worker/agent/evidence/redact.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace llmctl::agent {

bool NamesASecret(absl::string_view name) {
  std::string lower = absl::AsciiStrToLower(name);
  for (const char* word : {"token", "secret", "passw", "key", "credential", "auth", "cookie", "private"}) {
    if (absl::StrContains(lower, word)) return true;
  }
  return false;
}

std::string WithoutUserInfo(absl::string_view value) {
  constexpr absl::string_view kScheme = "://";
  std::string out;
  for (size_t at = value.find(kScheme); at != absl::string_view::npos; at = value.find(kScheme)) {
    absl::StrAppend(&out, value.substr(0, at + kScheme.size()));
    value.remove_prefix(at + kScheme.size());
    absl::string_view authority = value.substr(0, value.find_first_of("/?# \t\n\"'"));
    size_t user_info = authority.rfind('@');
    if (user_info == absl::string_view::npos) continue;
    absl::StrAppend(&out, "(left out)");
    value.remove_prefix(user_info);
  }
  return absl::StrCat(out, value);
}

std::string RedactedEnvironment(std::vector<std::string> environment) {
  std::sort(environment.begin(), environment.end());
  std::string text;
  for (const std::string& entry : environment) {
    std::string name = entry.substr(0, entry.find('='));
    absl::StrAppend(&text, NamesASecret(name) ? absl::StrCat(name, "=(left out)") : WithoutUserInfo(entry), "\n");
  }
  return text;
}

}  // namespace llmctl::agent
