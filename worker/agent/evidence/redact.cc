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

std::string RedactedEnvironment(std::vector<std::string> environment) {
  std::sort(environment.begin(), environment.end());
  std::string text;
  for (const std::string& entry : environment) {
    std::string name = entry.substr(0, entry.find('='));
    absl::StrAppend(&text, NamesASecret(name) ? absl::StrCat(name, "=(left out)") : entry, "\n");
  }
  return text;
}

}  // namespace llmctl::agent
