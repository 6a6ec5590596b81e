// JobSpec (proto) to what a trainer is told (contract).
//
// Every field of the specification is either mapped here or known not to be the trainer's concern; a descriptor
// test fails on one that is neither.
#pragma once

#include <set>
#include <string>

#include "absl/status/statusor.h"

#include "worker/agent/core/event.h"
#include "worker/contract/trainer_config.h"

namespace llmctl::v1 {
class JobSpec;
class StartRanks;
}  // namespace llmctl::v1

namespace llmctl::agent {

// With defaults filled in. InvalidArgument if a value cannot be read (the coordinator has checked them: another
// version's specification).
absl::StatusOr<contract::TrainerConfig> ToTrainerConfig(const v1::StartRanks& start);

// The order for the supervisor; what makes it impossible is in its `refusal`.
StartOrdered ToStartOrder(const v1::StartRanks& start);

// Paths of fields ("metadata.labels") that are the coordinator's or the agent's concern only.
const std::set<std::string>& FieldsNotForTheTrainer();

}  // namespace llmctl::agent
