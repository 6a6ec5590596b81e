#include "worker/contract/shim_config.h"

#include <optional>

#include "absl/status/status.h"

#include "common/base/status.h"
#include "worker/contract/json_fields.h"
#include "worker/contract/message_fields.h"

namespace llmctl::contract {

template <typename V>
void VisitFields(V& visit, FieldsOf<ShimConfig> auto& m) {
  visit("assignment", m.assignment);
  visit("argv", m.argv);
  visit("environment", m.environment);
  visit("orphan_timeout_seconds", m.orphan_timeout_seconds);
  visit("log_bytes_max", m.log_bytes_max);
}

std::string EncodeShimConfig(const ShimConfig& config) {
  return DumpJson(FieldWriter::Write(config), /*indent=*/2) + "\n";
}

absl::StatusOr<ShimConfig> DecodeShimConfig(absl::string_view json, UnknownSettings unknown) {
  std::optional<Json> parsed = ParseJson(json);
  if (!parsed.has_value()) return absl::InvalidArgumentError("shim configuration is not JSON");
  ShimConfig config;
  FieldReader::UnknownFields fields = unknown == UnknownSettings::kRefuse ? FieldReader::UnknownFields::kRefuse
                                                                          : FieldReader::UnknownFields::kIgnore;
  absl::Status read = FieldReader::Read(*parsed, "", fields, config);
  if (!read.ok()) return Annotate(read, "shim configuration");
  if (config.argv.empty()) {
    return absl::InvalidArgumentError("shim configuration: argv: expected a program, found none");
  }
  return config;
}

}  // namespace llmctl::contract
