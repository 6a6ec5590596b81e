#include "coordinator/runtime/hang_verdict.h"

#include "absl/strings/str_cat.h"

#include "common/diagnosis/verdict.h"

namespace llmctl::runtime {

std::optional<std::string> ConfirmHang(const HangWatch::Suspicion& suspicion,
                                       const std::vector<diagnosis::RankView>& views, int world_size) {
  for (const diagnosis::RankView& view : views) {
    if (view.step > suspicion.step) return std::nullopt;
  }
  return absl::StrCat(diagnosis::FindCulprit(views, world_size).text, "; ", suspicion.text);
}

}  // namespace llmctl::runtime
