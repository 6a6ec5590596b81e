#include "coordinator/store/record_node.h"

#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

#include "coordinator/store/json_text.h"
#include "coordinator/store/record_fields.h"

namespace llmctl::store {
namespace {

constexpr int kVersion = 1;

const char* NodeStateName(NodeState state) {
  switch (state) {
    case NodeState::kReady: return "ready";
    case NodeState::kLost: return "lost";
  }
  return "?";
}

JsonText EncodeStrike(const Strike& strike) {
  return {{"time", EncodeTime(strike.time)},
          {"weight", strike.weight},
          {"reason", strike.reason},
          {"job", strike.job.value()}};
}

absl::Status DecodeStrike(const Json& object, const std::string& what, Strike& strike) {
  FieldReader fields(object, what);
  std::string job;
  fields.ReadTime("time", strike.time);
  fields.Read("weight", strike.weight);
  fields.Read("reason", strike.reason);
  fields.Read("job", job);
  strike.job = JobId(job);
  return fields.status();
}

JsonText EncodePreflight(const PreflightReport& report) {
  JsonText checks = JsonText::Array();
  for (const PreflightCheck& check : report.checks) {
    checks.push_back({{"name", check.name},
                      {"outcome", check.outcome},
                      {"seconds", check.seconds},
                      {"value", check.value},
                      {"unit", check.unit},
                      {"detail", check.detail}});
  }
  return {{"time", EncodeTime(report.time)},
          {"boot_id", report.boot_id},
          {"passed", report.passed},
          {"failure", report.failure},
          {"checks", checks}};
}

absl::Status DecodePreflight(const Json& object, const std::string& what, PreflightReport& report) {
  FieldReader fields(object, what);
  fields.ReadTime("time", report.time);
  fields.Read("boot_id", report.boot_id);
  fields.Read("passed", report.passed);
  fields.Read("failure", report.failure);
  fields.ForEach("checks", [&](const Json& item) {
    FieldReader of_check(item, what);
    PreflightCheck& check = report.checks.emplace_back();
    of_check.Read("name", check.name);
    of_check.Read("outcome", check.outcome);
    of_check.Read("seconds", check.seconds);
    of_check.Read("value", check.value);
    of_check.Read("unit", check.unit);
    of_check.Read("detail", check.detail);
    return of_check.status();
  });
  return fields.status();
}

JsonText EncodeStanding(const NodeStanding& standing) {
  JsonText strikes = JsonText::Array();
  for (const Strike& strike : standing.strikes) strikes.push_back(EncodeStrike(strike));
  JsonText out = {{"service", NodeServiceName(standing.service)},
                  {"service_reason", standing.service_reason},
                  {"drain_deadline", EncodeDuration(standing.drain_deadline)},
                  {"drain_overdue", standing.drain_overdue},
                  {"trust", NodeTrustName(standing.trust)},
                  {"trust_time", EncodeTime(standing.trust_time)},
                  {"burn_in_wait", EncodeDuration(standing.burn_in_wait)},
                  {"quarantine_reason", standing.quarantine_reason},
                  {"strike_score", standing.strike_score},
                  {"strike_time", EncodeTime(standing.strike_time)},
                  {"strikes", strikes},
                  {"quarantines", standing.quarantines},
                  {"burn_in_passed", standing.burn_in_passed},
                  {"burn_in_failed", standing.burn_in_failed},
                  {"last_preflight", standing.last_preflight},
                  {"preflight_wanted", standing.preflight_wanted}};
  if (standing.preflight) out.Set("preflight", EncodePreflight(*standing.preflight));
  return out;
}

absl::Status DecodeStanding(const Json& object, const std::string& what, NodeStanding& standing) {
  FieldReader fields(object, what);
  fields.ReadEnum("service", NodeService::kDrained, NodeServiceName, standing.service);
  fields.Read("service_reason", standing.service_reason);
  fields.ReadDuration("drain_deadline", standing.drain_deadline);
  fields.Read("drain_overdue", standing.drain_overdue);
  fields.ReadEnum("trust", NodeTrust::kParole, NodeTrustName, standing.trust);
  fields.ReadTime("trust_time", standing.trust_time);
  fields.ReadDuration("burn_in_wait", standing.burn_in_wait);
  fields.Read("quarantine_reason", standing.quarantine_reason);
  fields.Read("strike_score", standing.strike_score);
  fields.ReadTime("strike_time", standing.strike_time);
  fields.ForEach("strikes", [&](const Json& item) {
    return DecodeStrike(item, what, standing.strikes.emplace_back());
  });
  fields.Read("quarantines", standing.quarantines);
  fields.Read("burn_in_passed", standing.burn_in_passed);
  fields.Read("burn_in_failed", standing.burn_in_failed);
  fields.Read("last_preflight", standing.last_preflight);
  fields.Read("preflight_wanted", standing.preflight_wanted);
  if (std::optional<Json> preflight = fields.Find("preflight")) {
    fields.Merge(DecodePreflight(*preflight, what, standing.preflight.emplace()));
  }
  return fields.status();
}

}  // namespace

std::string EncodeNode(const Node& node) {
  JsonText devices = JsonText::Array();
  for (const DeviceInfo& device : node.devices) {
    devices.push_back({{"index", device.index},
                       {"kind", device.kind},
                       {"model", device.model},
                       {"uuid", device.uuid},
                       {"memory_bytes", device.memory_bytes}});
  }
  JsonText capabilities = JsonText::Array();
  for (const std::string& name : node.capabilities) capabilities.push_back(name);
  JsonText out = {{"version", kVersion},
                  {"boot_id", node.boot_id},
                  {"incarnation", node.incarnation},
                  {"build_id", node.build_id},
                  {"trainer_digest", node.trainer_digest},
                  {"capabilities", capabilities},
                  {"fabric_address", node.fabric_address},
                  {"devices", devices},
                  {"state", NodeStateName(node.state)},
                  {"standing", EncodeStanding(node.standing)}};
  return out.text();
}

absl::StatusOr<Node> DecodeNode(const NodeId& id, absl::string_view blob) {
  std::string what = absl::StrCat("node ", id.value());
  FieldReader reader(blob, what);
  Node node;
  node.id = id;
  reader.CheckVersion(kVersion);
  reader.Read("boot_id", node.boot_id);
  reader.Read("incarnation", node.incarnation);
  reader.Read("build_id", node.build_id);
  reader.Read("trainer_digest", node.trainer_digest);
  reader.Read("fabric_address", node.fabric_address);
  reader.ReadEnum("state", NodeState::kLost, NodeStateName, node.state);
  reader.ForEach("capabilities", [&](const Json& item) {
    std::string_view name;
    if (item.get(name) != simdjson::SUCCESS) {
      return absl::DataLossError(absl::StrCat("stored record of ", what, ": a capability is no text"));
    }
    node.capabilities.emplace(name);
    return absl::OkStatus();
  });
  reader.ForEach("devices", [&](const Json& item) {
    FieldReader fields(item, what);
    DeviceInfo device;
    fields.Read("index", device.index);
    fields.Read("kind", device.kind);
    fields.Read("model", device.model);
    fields.Read("uuid", device.uuid);
    fields.Read("memory_bytes", device.memory_bytes);
    node.devices.push_back(std::move(device));
    return fields.status();
  });
  if (std::optional<Json> standing = reader.Find("standing")) {
    reader.Merge(DecodeStanding(*standing, what, node.standing));
  }
  if (!reader.status().ok()) return reader.status();
  return node;
}

}  // namespace llmctl::store
