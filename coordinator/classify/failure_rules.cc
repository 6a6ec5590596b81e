#include "coordinator/classify/failure_rules.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>
#include <re2/re2.h>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/status.h"
#include "common/json/strict_json.h"

namespace llmctl::classify {
namespace {

// An attempt more often than this is no limit.
constexpr int64_t kRetriesMost = 100;
constexpr size_t kLogBytesLookedAt = 4096;

std::unique_ptr<RE2> Pattern(ObjectReader& when, const char* key) {
  if (!when.Has(key)) return nullptr;
  // Logs are bytes; a program that prints Latin-1 must not keep a rule from being looked at.
  RE2::Options options(RE2::Latin1);
  options.set_log_errors(false);
  auto pattern = std::make_unique<RE2>(when.String(key), options);
  if (!pattern->ok()) when.Fail(key, absl::StrCat("expected a regular expression (RE2): ", pattern->error()));
  return pattern;
}

std::vector<int> Numbers(ObjectReader& when, const char* key) {
  std::vector<int> numbers;
  if (!when.Has(key)) return numbers;
  for (int64_t number : when.Integers(key, 0)) numbers.push_back(static_cast<int>(number));
  if (numbers.empty()) when.Fail(key, "expected at least one number");
  return numbers;
}

std::vector<std::string> Words(ObjectReader& when, const char* key) {
  std::vector<std::string> words;
  if (!when.Has(key)) return words;
  for (const nlohmann::json& word : when.Raw(key)) {
    if (!word.is_string()) {
      when.Fail(key, "expected an array of strings");
      break;
    }
    words.push_back(word.get<std::string>());
  }
  return words;
}

template <typename Enum>
Enum Named(ObjectReader& rule, const char* key, std::initializer_list<Enum> values, const char* (*name_of)(Enum)) {
  std::string text = rule.String(key);
  std::string expected;
  for (Enum value : values) {
    if (text == name_of(value)) return value;
    absl::StrAppend(&expected, expected.empty() ? "" : ", ", name_of(value));
  }
  rule.Fail(key, absl::StrCat("expected one of ", expected, ", found \"", text, "\""));
  return *values.begin();
}

bool Finds(const std::unique_ptr<RE2>& pattern, absl::string_view text) {
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *pattern);
}

// What was printed long before the end, and survived, is not the cause.
absl::string_view End(absl::string_view log) {
  return log.substr(log.size() - std::min(log.size(), kLogBytesLookedAt));
}

template <typename T>
bool Holds(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

struct FailureRules::Rule {
  Diagnosis diagnosis;
  std::vector<int> exit_codes;
  std::vector<int> signals;
  std::vector<std::string> fatal_classes;
  std::optional<bool> exited;
  std::optional<bool> start_failed;
  std::unique_ptr<RE2> message;
  std::unique_ptr<RE2> log;
  std::unique_ptr<RE2> kernel_log;
  std::vector<int> xids;

  void ReadConditions(ObjectReader when);
  void ReadVerdict(ObjectReader& rule);
  bool HasCondition() const;
  bool Matches(const RankExit& exit) const;
};

void FailureRules::Rule::ReadConditions(ObjectReader when) {
  exit_codes = Numbers(when, "exit_codes");
  signals = Numbers(when, "signals");
  fatal_classes = Words(when, "fatal_classes");
  if (when.Has("exited")) exited = when.Bool("exited");
  if (when.Has("start_failed")) start_failed = when.Bool("start_failed");
  message = Pattern(when, "message");
  log = Pattern(when, "log");
  kernel_log = Pattern(when, "kernel_log");
  xids = Numbers(when, "xids");
  when.Finish();
}

void FailureRules::Rule::ReadVerdict(ObjectReader& rule) {
  diagnosis.failure_class = Named(
      rule, "class",
      {FailureClass::kUser, FailureClass::kInfrastructure, FailureClass::kScheduler, FailureClass::kUnknown},
      FailureClassName);
  diagnosis.outlook =
      Named(rule, "outlook", {Outlook::kMayHelp, Outlook::kOtherNode, Outlook::kSmaller, Outlook::kNever}, OutlookName);
  if (rule.Has("cascade")) diagnosis.cascade = rule.Bool("cascade");
  if (rule.Has("retries_most")) {
    diagnosis.retries_most = static_cast<int>(rule.Integer("retries_most", 1, kRetriesMost));
  }
  if (diagnosis.retries_most > 0) diagnosis.budget = rule.Has("budget") ? rule.String("budget") : diagnosis.rule;
  if (rule.Has("strike")) {
    diagnosis.strike = rule.Number("strike");
    if (diagnosis.strike < 0) rule.Fail("strike", "expected 0 or more");
  }
  if (rule.Has("advice")) diagnosis.advice = rule.String("advice");
}

bool FailureRules::Rule::HasCondition() const {
  return !exit_codes.empty() || !signals.empty() || !fatal_classes.empty() || exited.has_value() ||
         start_failed.has_value() || message != nullptr || log != nullptr || kernel_log != nullptr || !xids.empty();
}

bool FailureRules::Rule::Matches(const RankExit& exit) const {
  bool by_itself = !exit.start_failed && exit.signal == 0;
  if (exited.has_value() && *exited != by_itself) return false;
  if (!exit_codes.empty() && (!by_itself || !Holds(exit_codes, exit.exit_code))) return false;
  if (!signals.empty() && !Holds(signals, exit.signal)) return false;
  if (!fatal_classes.empty() && !Holds(fatal_classes, exit.fatal_class)) return false;
  if (start_failed.has_value() && *start_failed != exit.start_failed) return false;
  if (!xids.empty()) {
    std::vector<int> seen = FindXids(exit.kernel_log);
    if (!std::any_of(seen.begin(), seen.end(), [&](int xid) { return Holds(xids, xid); })) return false;
  }
  if (message != nullptr && !Finds(message, exit.fatal_message)) return false;
  if (kernel_log != nullptr && !Finds(kernel_log, exit.kernel_log)) return false;
  return log == nullptr || Finds(log, exit.fatal_message) || Finds(log, End(exit.log_tail));
}

FailureRules::FailureRules() = default;
FailureRules::~FailureRules() = default;

absl::StatusOr<std::shared_ptr<const FailureRules>> FailureRules::Read(absl::string_view text,
                                                                       const std::string& what) {
  std::shared_ptr<FailureRules> rules(new FailureRules);
  LLM_RETURN_IF_ERROR(rules->Append(text, what));
  LLM_RETURN_IF_ERROR(rules->Append(DefaultRulesText(), "the rules compiled in"));
  return std::shared_ptr<const FailureRules>(std::move(rules));
}

std::shared_ptr<const FailureRules> FailureRules::Defaults() {
  static const std::shared_ptr<const FailureRules> defaults = [] {
    std::shared_ptr<FailureRules> rules(new FailureRules);
    absl::Status status = rules->Append(DefaultRulesText(), "the rules compiled in");
    CHECK(status.ok()) << status.message();
    return rules;
  }();
  return defaults;
}

absl::Status FailureRules::Append(absl::string_view text, const std::string& what) {
  LLM_ASSIGN_OR_RETURN(nlohmann::json json, ParseStrictJson(text, what));
  JsonErrors errors;
  ObjectReader root(json, what, errors);
  std::set<std::string> names;
  for (ObjectReader& object : root.Objects("rules")) {
    Rule rule;
    rule.diagnosis.rule = object.String("name");
    if (rule.diagnosis.rule.empty()) object.Fail("name", "expected a name");
    if (!names.insert(rule.diagnosis.rule).second) object.Fail("name", "another rule has this name");
    rule.ReadConditions(object.Object("when"));
    if (!rule.HasCondition()) object.Fail("when", "expected a condition: without one it would hide all that follow");
    rule.ReadVerdict(object);
    object.Finish();
    rules_.push_back(std::move(rule));
  }
  root.Finish();
  return errors.status();
}

Diagnosis FailureRules::Diagnose(const RankExit& exit) const {
  for (const Rule& rule : rules_) {
    if (rule.Matches(exit)) return rule.diagnosis;
  }
  return {.rule = "unclassified", .failure_class = FailureClass::kUnknown};
}

std::vector<std::string> FailureRules::Names() const {
  std::vector<std::string> names;
  for (const Rule& rule : rules_) names.push_back(rule.diagnosis.rule);
  return names;
}

std::vector<int> FindXids(absl::string_view kernel_log) {
  static const RE2* const kXid = new RE2(R"(NVRM: Xid \([^)]*\): (\d{1,4}))", RE2::Latin1);
  std::vector<int> xids;
  re2::StringPiece rest(kernel_log.data(), kernel_log.size());
  int xid = 0;
  while (RE2::FindAndConsume(&rest, *kXid, &xid)) xids.push_back(xid);
  return xids;
}

}  // namespace llmctl::classify
