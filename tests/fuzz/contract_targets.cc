#include "tests/fuzz/contract_targets.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "worker/contract/line_splitter.h"
#include "worker/contract/messages.h"
#include "worker/contract/trainer_config.h"

namespace llmctl::fuzz {
namespace {

// What a peer may send: cut into lines as the link does, then decoded.
void RunContractLines(absl::string_view bytes) {
  contract::LineSplitter lines(contract::kLineBytesMax);
  lines.Append(bytes);
  while (std::optional<std::string> line = lines.Next()) {
    absl::StatusOr<contract::Envelope> envelope = contract::DecodeLine(*line);
    if (!envelope.ok()) continue;
    absl::StatusOr<std::string> encoded = contract::EncodeLine(*envelope);
    // It may have grown past the limit, as escapes are written in full.
    if (!encoded.ok()) continue;
    absl::StatusOr<contract::Envelope> again = contract::DecodeLine(*encoded);
    CHECK(again.ok()) << again.status().message();
    CHECK_EQ(*contract::EncodeLine(*again), *encoded);
  }
}

void RunTrainerConfig(absl::string_view bytes) {
  absl::StatusOr<contract::TrainerConfig> config = contract::DecodeTrainerConfig(bytes);
  if (!config.ok()) return;
  std::string text = contract::EncodeTrainerConfig(*config);
  absl::StatusOr<contract::TrainerConfig> again = contract::DecodeTrainerConfig(text);
  CHECK(again.ok()) << again.status().message();
  CHECK_EQ(contract::EncodeTrainerConfig(*again), text);
}

std::string LineSeed() {
  std::string out;
  contract::Hello hello;
  hello.role = "trainer";
  contract::Assignment assignment;
  assignment.rank_table.push_back({0, "a", "10.0.0.1"});
  contract::StoreRequest store;
  store.key = "k";
  store.value = "\x01\xff";
  contract::Progress progress;
  progress.validation_loss = 2.5;
  int64_t seq = 1;
  std::vector<contract::Message> messages = {hello, assignment, store, progress};
  for (contract::Message& message : messages) {
    out += *contract::EncodeLine({seq++, std::move(message)}) + "\n";
  }
  return out;
}

}  // namespace

std::vector<Target> ContractTargets() {
  return {{"contract_lines", RunContractLines, {LineSeed()}},
          {"trainer_config", RunTrainerConfig, {contract::EncodeTrainerConfig({})}}};
}

}  // namespace llmctl::fuzz
