// Rules that turn how a rank ended into a diagnosis. Data, not code: a table in JSON that is compiled in
// (default_rules.cc), and before it, where the operator gives one, a file of the same form.
//
//   {"rules": [
//     {"name": "gpu-fell-off", "when": {"kernel_log": "GPU has fallen off the bus"},
//      "class": "infrastructure", "outlook": "other-node", "strike": 3}
//   ]}
//
// The first rule whose conditions all hold decides. Conditions (at least one):
//   exit_codes, signals  one of these
//   fatal_classes        the trainer's own word for it is one of these
//   exited               it ended by itself, with a code
//   start_failed         no process ever ran
//   message              RE2 found in the trainer's last words
//   log                  RE2 found in its last words or in the last 4 KiB of its error stream
//   kernel_log           RE2 found in what the kernel said about it
//   xids                 the kernel reported one of these errors of the NVIDIA driver
// Verdict: class (user, infrastructure, scheduler, unknown) and outlook (may-help, other-node, smaller, never); and
// where they are not the usual: cascade, retries_most with budget, strike, advice (model/failure.h).
//
// Pure and immutable once made: any thread may use it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "coordinator/model/failure.h"
#include "coordinator/model/job.h"

namespace llmctl::classify {

class FailureRules {
 public:
  // Rules of `text`, then those compiled in. InvalidArgument names rule and field; `what` names the text.
  static absl::StatusOr<std::shared_ptr<const FailureRules>> Read(absl::string_view text, const std::string& what);
  // Those compiled in.
  static std::shared_ptr<const FailureRules> Defaults();

  ~FailureRules();
  FailureRules(const FailureRules&) = delete;
  FailureRules& operator=(const FailureRules&) = delete;

  // Of a rank that neither finished nor ended on request. Always says something.
  Diagnosis Diagnose(const RankExit& exit) const;
  // In order.
  std::vector<std::string> Names() const;

 private:
  struct Rule;
  FailureRules();
  absl::Status Append(absl::string_view text, const std::string& what);

  std::vector<Rule> rules_;
};

// The JSON of the rules compiled in: to read, and to begin a file with.
absl::string_view DefaultRulesText();

// Numbers of NVIDIA driver errors in lines of the kernel's log ("NVRM: Xid (PCI:0000:17:00): 79, pid=...").
std::vector<int> FindXids(absl::string_view kernel_log);

}  // namespace llmctl::classify
