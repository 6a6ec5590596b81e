// A node as the versioned JSON blob of its row; the same rules as record_job.h.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/base/ids.h"
#include "coordinator/model/node.h"

namespace llmctl::store {

std::string EncodeNode(const Node& node);
absl::StatusOr<Node> DecodeNode(const NodeId& id, absl::string_view blob);

}  // namespace llmctl::store
