// The one pass over all of a text: Vectorscan says at which bytes a pattern ends.
//
// Patterns are byte patterns, wide on purpose: what they find is only where something might be.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <hs/hs.h>
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::data {

struct CandidatePattern {
  std::string expression;
  bool ignore_case = false;
};

// What a scan writes to; one per thread.
class CandidateScratch {
 public:
  CandidateScratch() = default;
  ~CandidateScratch() { hs_free_scratch(scratch_); }
  CandidateScratch(const CandidateScratch&) = delete;
  CandidateScratch& operator=(const CandidateScratch&) = delete;

 private:
  friend class CandidateScanner;
  hs_scratch_t* scratch_ = nullptr;
};

// Const after construction, safe from any thread.
class CandidateScanner {
 public:
  static absl::StatusOr<CandidateScanner> Compile(const std::vector<CandidatePattern>& patterns);

  void Prepare(CandidateScratch& scratch) const;

  // Calls `found` with the pattern's index and the byte behind each match. Those of one pattern come in order.
  void Scan(absl::string_view text, CandidateScratch& scratch,
            absl::FunctionRef<void(size_t pattern, size_t end)> found) const;

 private:
  struct Free {
    void operator()(hs_database_t* database) const { hs_free_database(database); }
  };
  explicit CandidateScanner(hs_database_t* database) : database_(database) {}
  std::unique_ptr<hs_database_t, Free> database_;
};

}  // namespace llmctl::data
