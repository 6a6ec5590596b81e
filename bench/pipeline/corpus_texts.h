// What the benches of the data pipeline share: the texts of a corpus in memory, and the clock.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace llmctl::data {

// Of this process, in user mode.
inline double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + usage.ru_utime.tv_usec * 1e-6;
}

// The field "text" of each line of JSON, up to so many MB of it (0: all).
inline absl::StatusOr<std::vector<std::string>> ReadTexts(const std::string& path, int64_t megabytes) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::string> texts;
  int64_t bytes = 0;
  for (std::string line; std::getline(file, line);) {
    nlohmann::json value = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!value.is_object() || !value.contains("text") || !value["text"].is_string()) {
      return absl::InvalidArgumentError(absl::StrCat("read ", path, ": line ", texts.size() + 1,
                                                     " is no object with a string \"text\""));
    }
    texts.push_back(value["text"].get<std::string>());
    bytes += texts.back().size();
    if (megabytes > 0 && bytes > megabytes * 1000000) break;
  }
  if (texts.empty()) return absl::NotFoundError(absl::StrCat("read ", path, ": no document in it"));
  return texts;
}

}  // namespace llmctl::data
