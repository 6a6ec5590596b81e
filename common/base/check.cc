#include "common/base/check.h"

#include <unistd.h>

#include <cstdlib>

namespace llmctl::check_internal {

Failure::Failure(const char* file, int line, const std::string& condition) {
  reason_ << "CHECK failed at " << file << ":" << line << ": " << condition << " ";
}

Failure::~Failure() {
  std::string text = reason_.str() + "\n";
  // write(2), not a stream: the failure may have happened inside one.
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  std::abort();
}

}  // namespace llmctl::check_internal
