#include "worker/contract/preflight.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "worker/contract/json_fields.h"

namespace llmctl::contract {

// Found by argument-dependent lookup, hence not in an unnamed namespace.

template <typename V>
void VisitFields(V& visit, FieldsOf<PreflightCheck> auto& m) {
  visit("name", m.name);
  visit("outcome", m.outcome);
  visit("seconds", m.seconds);
  visit("value", m.value);
  visit("unit", m.unit);
  visit("detail", m.detail);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<Preflight> auto& m) {
  visit("passed", m.passed);
  visit("failure", m.failure);
  visit("checks", m.checks);
}

Preflight Summarize(std::vector<PreflightCheck> checks) {
  Preflight preflight{.passed = true, .failure = "", .checks = std::move(checks)};
  for (const PreflightCheck& check : preflight.checks) {
    if (check.outcome != "failed") continue;
    preflight.passed = false;
    preflight.failure = absl::StrCat(check.name, ": ", check.detail);
    break;
  }
  return preflight;
}

std::string EncodePreflight(const Preflight& preflight) { return DumpJson(FieldWriter::Write(preflight)); }

absl::StatusOr<Preflight> DecodePreflight(absl::string_view json) {
  std::optional<Json> parsed = ParseJson(json);
  if (!parsed.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("result of a pre-flight: expected one JSON object, found \"", json.substr(0, 80), "\""));
  }
  Preflight preflight;
  // A newer trainer may say more.
  absl::Status status = FieldReader::Read(*parsed, "", FieldReader::UnknownFields::kIgnore, preflight);
  if (!status.ok()) return Annotate(status, "result of a pre-flight");
  return preflight;
}

}  // namespace llmctl::contract
