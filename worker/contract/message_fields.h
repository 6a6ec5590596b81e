// Fields of messages that are also part of configurations. Internal to worker/contract (see json_fields.h).
#pragma once

#include "worker/contract/json_fields.h"
#include "worker/contract/messages.h"

namespace llmctl::contract {

template <typename V>
void VisitFields(V& visit, FieldsOf<RankAddress> auto& m) {
  visit("rank", m.rank);
  visit("node", m.node);
  visit("fabric_address", m.fabric_address);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<Assignment> auto& m) {
  visit("generation", m.generation);
  visit("rank", m.rank);
  visit("world_size", m.world_size);
  visit("device", m.device);
  visit("rank_table", m.rank_table);
}

}  // namespace llmctl::contract
