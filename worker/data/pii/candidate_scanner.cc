#include "worker/data/pii/candidate_scanner.h"

#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/base/check.h"

namespace llmctl::data {

absl::StatusOr<CandidateScanner> CandidateScanner::Compile(const std::vector<CandidatePattern>& patterns) {
  if (hs_valid_platform() != HS_SUCCESS) {
    return absl::FailedPreconditionError("find personal data: this processor lacks SSE 4.2, which Vectorscan needs");
  }
  std::vector<const char*> expressions;
  std::vector<unsigned> flags, ids;
  for (const CandidatePattern& pattern : patterns) {
    ids.push_back(static_cast<unsigned>(ids.size()));
    expressions.push_back(pattern.expression.c_str());
    flags.push_back(pattern.ignore_case ? HS_FLAG_CASELESS : 0);
  }
  hs_database_t* database = nullptr;
  hs_compile_error_t* error = nullptr;
  if (hs_compile_multi(expressions.data(), flags.data(), ids.data(), static_cast<unsigned>(ids.size()), HS_MODE_BLOCK,
                       /*platform=*/nullptr, &database, &error) == HS_SUCCESS) {
    return CandidateScanner(database);
  }
  std::string message = error->message;
  if (error->expression >= 0) absl::StrAppend(&message, " in ", patterns[error->expression].expression);
  hs_free_compile_error(error);
  return absl::InternalError(absl::StrCat("find personal data: compile patterns: ", message));
}

void CandidateScanner::Prepare(CandidateScratch& scratch) const {
  CHECK_EQ(hs_alloc_scratch(database_.get(), &scratch.scratch_), HS_SUCCESS) << "no memory for Vectorscan's scratch";
}

void CandidateScanner::Scan(absl::string_view text, CandidateScratch& scratch,
                            absl::FunctionRef<void(size_t pattern, size_t end)> found) const {
  CHECK(text.size() < std::numeric_limits<uint32_t>::max()) << "a text of 4 GB or more: readers refuse it";
  auto on_match = [](unsigned id, unsigned long long, unsigned long long end, unsigned, void* context) {
    (*static_cast<decltype(found)*>(context))(id, end);
    return 0;
  };
  CHECK_EQ(hs_scan(database_.get(), text.data(), static_cast<unsigned>(text.size()), 0, scratch.scratch_, on_match,
                   &found),
           HS_SUCCESS)
      << "Vectorscan fails on wrong use only";
}

}  // namespace llmctl::data
