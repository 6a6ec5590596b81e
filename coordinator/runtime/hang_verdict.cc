#include "coordinator/runtime/hang_verdict.h"

#include "absl/strings/str_cat.h"

namespace llmctl::runtime {

std::optional<diagnosis::Verdict> ConfirmHang(const HangWatch::Suspicion& suspicion,
                                              const std::vector<diagnosis::RankView>& views, int world_size) {
  for (const diagnosis::RankView& view : views) {
    if (view.step > suspicion.step) return std::nullopt;
    // A validation or a checkpoint has ended, or has begun.
    auto before = suspicion.activities.find(view.rank);
    if (before != suspicion.activities.end() && !view.activity.empty() && view.activity != before->second) {
      return std::nullopt;
    }
  }
  diagnosis::Verdict verdict = diagnosis::FindCulprit(views, world_size);
  absl::StrAppend(&verdict.text, "; ", suspicion.text);
  return verdict;
}

}  // namespace llmctl::runtime
