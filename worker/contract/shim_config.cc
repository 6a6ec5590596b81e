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

template <typename V>
void VisitFields(V& visit, FieldsOf<StandbyConfig> auto& m) {
  visit("argv", m.argv);
  visit("environment", m.environment);
  visit("trainer_digest", m.trainer_digest);
  visit("orphan_timeout_seconds", m.orphan_timeout_seconds);
  visit("log_bytes_max", m.log_bytes_max);
}

namespace {

template <typename T>
std::string Encode(const T& config) {
  return DumpJson(FieldWriter::Write(config), /*indent=*/2) + "\n";
}

// `what` names it in messages.
template <typename T>
absl::StatusOr<T> Decode(absl::string_view json, const std::string& what, UnknownSettings unknown) {
  std::optional<Json> parsed = ParseJson(json);
  if (!parsed.has_value()) return absl::InvalidArgumentError(what + " is not JSON");
  T config;
  FieldReader::UnknownFields fields = unknown == UnknownSettings::kRefuse ? FieldReader::UnknownFields::kRefuse
                                                                          : FieldReader::UnknownFields::kIgnore;
  absl::Status read = FieldReader::Read(*parsed, "", fields, config);
  if (!read.ok()) return Annotate(read, what);
  if (config.argv.empty()) return absl::InvalidArgumentError(what + ": argv: expected a program, found none");
  return config;
}

}  // namespace

std::string EncodeShimConfig(const ShimConfig& config) { return Encode(config); }

absl::StatusOr<ShimConfig> DecodeShimConfig(absl::string_view json, UnknownSettings unknown) {
  return Decode<ShimConfig>(json, "shim configuration", unknown);
}

std::string EncodeStandbyConfig(const StandbyConfig& config) { return Encode(config); }

absl::StatusOr<StandbyConfig> DecodeStandbyConfig(absl::string_view json) {
  return Decode<StandbyConfig>(json, "standby configuration", UnknownSettings::kRefuse);
}

}  // namespace llmctl::contract
