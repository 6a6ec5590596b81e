#include "common/spec/pattern.h"

#include <memory>
#include <string>

#include <re2/re2.h>

#include "absl/container/flat_hash_map.h"

#include "common/base/check.h"
#include "common/base/mutex.h"

namespace llmctl::spec {
namespace {

class CompiledPatterns {
 public:
  const RE2& Get(absl::string_view pattern) {
    MutexLock lock(mutex_);
    auto known = patterns_.find(pattern);
    if (known != patterns_.end()) return *known->second;
    auto compiled = std::make_unique<const RE2>(re2::StringPiece(pattern.data(), pattern.size()));
    CHECK(compiled->ok()) << "pattern " << std::string(pattern) << ": " << compiled->error();
    return *patterns_.emplace(std::string(pattern), std::move(compiled)).first->second;
  }

 private:
  Mutex mutex_;
  absl::flat_hash_map<std::string, std::unique_ptr<const RE2>> patterns_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

bool Matches(absl::string_view text, absl::string_view pattern) {
  // Never destroyed: another static object may still match when the program ends.
  static CompiledPatterns& patterns = *new CompiledPatterns;
  return RE2::FullMatch(re2::StringPiece(text.data(), text.size()), patterns.Get(pattern));
}

}  // namespace llmctl::spec
