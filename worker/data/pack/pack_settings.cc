#include "worker/data/pack/pack_settings.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace llmctl::data {
namespace {

constexpr int kSequenceLengthMax = 1 << 24;
// With fewer rows in a window, the one that is left part empty in each begins to count.
constexpr int64_t kWindowRowsMin = 16;

}  // namespace

absl::Status PackSettings::Validate() const {
  std::vector<std::string> faults;
  if (sequence_length < 1 || sequence_length > kSequenceLengthMax) {
    faults.push_back(absl::StrCat("sequence_length is ", sequence_length, ", expected 1 to ", kSequenceLengthMax));
  } else if (window_tokens < kWindowRowsMin * row_tokens()) {
    faults.push_back(absl::StrCat("window_tokens is ", window_tokens, ", expected at least ", kWindowRowsMin,
                                  " rows: ", kWindowRowsMin * row_tokens()));
  }
  if (window_tokens > int64_t{1} << 33) {
    faults.push_back(absl::StrCat("window_tokens is ", window_tokens, ", expected at most 2^33"));
  }
  if (faults.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(faults, "; "));
}

}  // namespace llmctl::data
