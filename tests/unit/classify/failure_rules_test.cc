// The table of failures: an example of each rule, in the words of those who print them, and what a file of rules must
// look like.
#include "coordinator/classify/failure_rules.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker/contract/exit_codes.h"

namespace llmctl::classify {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

RankExit Code(int code, const std::string& fatal_class = "", const std::string& message = "") {
  RankExit exit;
  exit.exit_code = code;
  exit.fatal_class = fatal_class;
  exit.fatal_message = message;
  return exit;
}

RankExit Printed(int code, const std::string& log) {
  RankExit exit = Code(code);
  exit.log_tail = log;
  return exit;
}

RankExit Signal(int signal, const std::string& kernel_log = "") {
  RankExit exit;
  exit.signal = signal;
  exit.kernel_log = kernel_log;
  return exit;
}

RankExit NeverRan(const std::string& fatal_class, const std::string& message) {
  RankExit exit = Code(0, fatal_class, message);
  exit.start_failed = true;
  return exit;
}

// As the shim says it.
RankExit KilledForMemory() {
  RankExit exit = Signal(9);
  exit.fatal_class = "oom";
  return exit;
}

struct Example {
  const char* rule;
  RankExit exit;
  FailureClass failure_class;
  Outlook outlook;
};

constexpr FailureClass kUser = FailureClass::kUser;
constexpr FailureClass kInfrastructure = FailureClass::kInfrastructure;
constexpr FailureClass kUnknown = FailureClass::kUnknown;

std::vector<Example> Examples() {
  const std::string xid = "NVRM: Xid (PCI:0000:17:00): ";
  return {
      {"xid-hardware", Signal(9, xid + "79, pid=1234, GPU has fallen off the bus."), kInfrastructure,
       Outlook::kOtherNode},
      {"xid-hardware", Signal(6, xid + "31, pid=1\n" + xid + "94, Contained: SM"), kInfrastructure,
       Outlook::kOtherNode},
      {"xid-program", Signal(6, xid + "31, pid=1234, MMU Fault"), kUser, Outlook::kMayHelp},
      {"kernel-machine-check", Signal(7, "[Hardware Error]: Uncorrected, software restartable error."), kInfrastructure,
       Outlook::kOtherNode},
      {"host-out-of-memory", Signal(9, "Memory cgroup out of memory: Killed process 77 (llm-trainer)"), kUser,
       Outlook::kMayHelp},
      {"kernel-disk-error", Signal(7, "blk_update_request: I/O error, dev nvme0n1, sector 7"), kInfrastructure,
       Outlook::kOtherNode},
      {"config", Code(64, "config", "data.dataset: no dataset there"), kUser, Outlook::kNever},
      {"config", NeverRan("config", "start: the path is not below an allowed root"), kUser, Outlook::kNever},
      {"user", Code(65, "user", "loss is not finite at step 7"), kUser, Outlook::kMayHelp},
      {"killed", Signal(9), kInfrastructure, Outlook::kMayHelp},
      {"killed", Signal(15), kInfrastructure, Outlook::kMayHelp},
      {"do-not-requeue", Code(93), kUser, Outlook::kNever},
      {"device-out-of-memory", Code(70, "internal", "CUDA out of memory. Tried to allocate 2.00 GiB"), kUser,
       Outlook::kSmaller},
      {"memory-ran-out", KilledForMemory(), kUser, Outlook::kMayHelp},
      {"memory-refused", Code(66, "oom", "map 9 bytes for training: Cannot allocate memory"), kUser,
       Outlook::kSmaller},
      {"gpu-memory-error", Code(70, "internal", "CUDA error: uncorrectable ECC error encountered"), kInfrastructure,
       Outlook::kOtherNode},
      {"gpu-lost", Printed(1, "RuntimeError: CUDA_ERROR_DEVICE_UNAVAILABLE"), kInfrastructure, Outlook::kOtherNode},
      {"gpu-driver", Printed(1, "CUDA driver version is insufficient for CUDA runtime version"), kInfrastructure,
       Outlook::kOtherNode},
      {"gpu-program-error", Printed(1, "CUDA error: an illegal memory access was encountered"), kUser,
       Outlook::kMayHelp},
      {"storage", Code(67, "infrastructure", "write /ckpt/x: No space left on device"), kInfrastructure,
       Outlook::kMayHelp},
      {"storage", Printed(1, "open /data/shard-3: Stale file handle"), kInfrastructure, Outlook::kMayHelp},
      {"nccl-network", Printed(1, "ncclSystemError: unhandled system error, IBV_WC_RETRY_EXC_ERR"), kInfrastructure,
       Outlook::kMayHelp},
      {"nccl-remote", Printed(1, "ncclRemoteError: A call failed possibly due to a network error"), kInfrastructure,
       Outlook::kMayHelp},
      {"nccl-timeout", Printed(6, "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5)"), kUnknown,
       Outlook::kMayHelp},
      {"gloo-peer", Code(70, "internal", "[gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]"),
       kInfrastructure, Outlook::kMayHelp},
      {"orphaned", Code(68, "orphaned", "no way to the coordinator"), kInfrastructure, Outlook::kMayHelp},
      {"start-refused", NeverRan("infrastructure", "start rank 1: device 0 is still used by rank 0"), kInfrastructure,
       Outlook::kMayHelp},
      {"start-failed", NeverRan("infrastructure", "start /opt/llm-shim: Cannot allocate memory"), kInfrastructure,
       Outlook::kOtherNode},
      {"infrastructure", Code(67, "infrastructure", "rank 2 has gone"), kInfrastructure, Outlook::kMayHelp},
      {"host", Code(1, "infrastructure", "the shim left no record"), kInfrastructure, Outlook::kMayHelp},
      {"internal", Code(70, "internal", "vector::_M_range_check"), kUnknown, Outlook::kMayHelp},
      {"bad-instruction-or-bus", Signal(7), kInfrastructure, Outlook::kOtherNode},
      {"bad-instruction-or-bus", Signal(4), kInfrastructure, Outlook::kOtherNode},
      {"crashed", Signal(11), kUnknown, Outlook::kMayHelp},
      {"crashed", Signal(6), kUnknown, Outlook::kMayHelp},
      {"exit-config", Code(64), kUser, Outlook::kNever},
      {"exit-memory-refused", Code(66), kUser, Outlook::kSmaller},
      {"exit-out-of-memory", Code(247), kUser, Outlook::kMayHelp},
      {"exit-infrastructure", Code(67), kInfrastructure, Outlook::kMayHelp},
      {"exit-infrastructure", Code(68), kInfrastructure, Outlook::kMayHelp},
      {"exit-internal", Code(70), kUnknown, Outlook::kMayHelp},
      {"exit-killed", Code(137), kInfrastructure, Outlook::kMayHelp},
      {"exit-crashed", Code(139), kUnknown, Outlook::kMayHelp},
      {"exit-gpu-driver", Code(201), kInfrastructure, Outlook::kOtherNode},
      {"missing-module", Printed(1, "ModuleNotFoundError: No module named 'flash_attn'"), kUser, Outlook::kNever},
      {"exit-user", Printed(1, "AssertionError: shapes differ"), kUser, Outlook::kMayHelp},
      {"unclassified", Signal(34), kUnknown, Outlook::kMayHelp},
  };
}

TEST(FailureRules, EachExampleIsToldByItsRule) {
  for (const Example& example : Examples()) {
    Diagnosis found = FailureRules::Defaults()->Diagnose(example.exit);

    EXPECT_EQ(found.rule, example.rule);
    EXPECT_EQ(found.failure_class, example.failure_class) << example.rule;
    EXPECT_EQ(found.outlook, example.outlook) << example.rule;
  }
}

// The kernel's lines of the last minutes come with every exit, whoever they are about.
TEST(FailureRules, WhatTheKernelSaysOfTheHostDoesNotExcuseTheUser) {
  const std::string host = "[Hardware Error]: Uncorrected error\nI/O error, dev nvme0n1, sector 7\n";
  for (const char* word : {"config", "user"}) {
    RankExit exit = Code(word == std::string("config") ? 64 : 65, word, "loss is not finite at step 7");
    exit.kernel_log = host;
    EXPECT_EQ(FailureRules::Defaults()->Diagnose(exit).rule, word);
  }
  RankExit missing = Code(64, "config", "data.dataset: no dataset there");
  missing.kernel_log = "NVRM: Xid (PCI:0000:17:00): 79, GPU has fallen off the bus.";
  EXPECT_EQ(FailureRules::Defaults()->Diagnose(missing).rule, "config");
}

TEST(FailureRules, CorrectedErrorsAndOddDevicesAccuseNobody) {
  for (const char* line : {"mce: [Hardware Error]: Machine check events logged",
                           "[Hardware Error]: Corrected error, no action required.",
                           "blk_update_request: I/O error, dev fd0, sector 0", "I/O error, dev sr0, sector 0"}) {
    EXPECT_EQ(FailureRules::Defaults()->Diagnose(Signal(9, line)).strike, 0) << line;
  }
}

TEST(FailureRules, NoRuleIsWithoutAnExample) {
  std::set<std::string> shown;
  for (const Example& example : Examples()) shown.insert(example.rule);

  for (const std::string& name : FailureRules::Defaults()->Names()) EXPECT_TRUE(shown.contains(name)) << name;
}

TEST(FailureRules, KnowTheExitCodesOfTheTrainerContract) {
  auto rule_of = [](int code) { return FailureRules::Defaults()->Diagnose(Code(code)).rule; };

  EXPECT_EQ(rule_of(contract::kExitConfig), "exit-config");
  EXPECT_EQ(rule_of(contract::kExitUser), "exit-user");
  EXPECT_EQ(rule_of(contract::kExitOutOfMemory), "exit-memory-refused");
  EXPECT_EQ(rule_of(contract::kExitInfrastructure), "exit-infrastructure");
  EXPECT_EQ(rule_of(contract::kExitOrphaned), "exit-infrastructure");
  EXPECT_EQ(rule_of(contract::kExitInternal), "exit-internal");
}

TEST(FailureRules, OnlyFailuresOfPeersAreCascades) {
  std::set<std::string> cascades;
  for (const Example& example : Examples()) {
    if (FailureRules::Defaults()->Diagnose(example.exit).cascade) cascades.insert(example.rule);
  }

  EXPECT_THAT(cascades, ElementsAre("exit-infrastructure", "gloo-peer", "infrastructure", "nccl-remote", "nccl-timeout",
                                    "orphaned"));
}

TEST(FailureRules, WhatWasPrintedLongBeforeTheEndIsNoCause) {
  RankExit exit = Printed(1, "No space left on device\n" + std::string(8192, '.'));

  EXPECT_EQ(FailureRules::Defaults()->Diagnose(exit).rule, "exit-user");
}

TEST(FailureRules, OfAFileComeBeforeThoseCompiledIn) {
  constexpr char kMine[] = R"json({"rules": [
      {"name": "licence", "when": {"exit_codes": [7], "log": "no licence (left|free)"}, "class": "scheduler",
       "outlook": "may-help", "retries_most": 5, "strike": 0.25, "advice": "wait"}]})json";

  auto rules = FailureRules::Read(kMine, "my rules");

  ASSERT_TRUE(rules.ok()) << rules.status();
  Diagnosis found = (*rules)->Diagnose(Printed(7, "no licence free"));
  EXPECT_EQ(found.rule, "licence");
  EXPECT_EQ(found.failure_class, FailureClass::kScheduler);
  EXPECT_EQ(found.retries_most, 5);
  EXPECT_EQ(found.budget, "licence");
  EXPECT_EQ(found.strike, 0.25);
  EXPECT_EQ(found.advice, "wait");
  EXPECT_EQ((*rules)->Diagnose(Printed(7, "something else")).rule, "exit-user");
  EXPECT_EQ((*rules)->Diagnose(Signal(9)).rule, "killed");
}

TEST(FailureRules, AreReadStrictly) {
  auto error = [](const std::string& rule) {
    absl::Status status = FailureRules::Read("{\"rules\": [" + rule + "]}", "my rules").status();
    EXPECT_FALSE(status.ok()) << rule;
    return std::string(status.message());
  };
  const std::string verdict = R"("class": "user", "outlook": "never"})";

  EXPECT_THAT(error(R"({"name": "x", "when": {}, )" + verdict), HasSubstr("expected a condition"));
  EXPECT_THAT(error(R"({"name": "x", "when": {"log": "("}, )" + verdict), HasSubstr("regular expression"));
  EXPECT_THAT(error(R"({"name": "x", "when": {"signal": [9]}, )" + verdict), HasSubstr("signal"));
  EXPECT_THAT(error(R"({"name": "x", "when": {"signals": []}, )" + verdict), HasSubstr("at least one number"));
  EXPECT_THAT(error(R"({"name": "x", "when": {"signals": [9]}, "class": "mine", "outlook": "never"})"),
              HasSubstr("expected one of user, infrastructure, scheduler, unknown, found \"mine\""));
  EXPECT_THAT(error(R"({"name": "x", "when": {"signals": [9]}, "class": "user", "outlook": "never", "strike": -1})"),
              HasSubstr("strike"));
  EXPECT_THAT(error(R"({"name": "", "when": {"signals": [9]}, )" + verdict), HasSubstr("expected a name"));
  EXPECT_THAT(std::string(FailureRules::Read("rules: []", "my rules").status().message()), HasSubstr("my rules"));
}

TEST(FailureRules, FindAllXidsInAKernelLog) {
  EXPECT_THAT(FindXids("[1.0] NVRM: Xid (PCI:0000:17:00): 79, pid=1\nNVRM: Xid (PCI:0000:18:00): 13, x"),
              ElementsAre(79, 13));
  EXPECT_THAT(FindXids("usb 1-1: new device"), IsEmpty());
}

}  // namespace
}  // namespace llmctl::classify
