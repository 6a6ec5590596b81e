// Which entity an event is about: what a crash in its step is blamed on.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

#include "coordinator/core/event.h"
#include "coordinator/core/state.h"

namespace llmctl::core {

// Kinds of entities, as Focus::Set() takes them.
inline constexpr absl::string_view kJobEntity = "job";
inline constexpr absl::string_view kNodeEntity = "node";
inline constexpr absl::string_view kSubmissionEntity = "submission";

struct Entity {
  absl::string_view kind;  // empty: the event is about many, which the step goes through one by one
  std::string id;
};

Entity EntityOf(const State& state, const Event& event);
// Of a submission that carries a key: its retries have the same.
std::string SubmissionId(const JobSubmitted& event);

}  // namespace llmctl::core
