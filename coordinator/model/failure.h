// Why something failed, and what that means for the next attempt.
#pragma once

#include <string>

namespace llmctl {

// Whose concern it is: decides which budget pays.
enum class FailureClass {
  kNone,
  kUser,            // the job's own making: maxRestarts pays
  kInfrastructure,  // a host, device, network or file system: paid by progress
  kScheduler,       // planned: a time limit
  kUnknown,         // cannot be told: treated as the infrastructure's, but accuses nobody
};
const char* FailureClassName(FailureClass c);

// What another attempt may hope for.
enum class Outlook {
  kMayHelp,
  kOtherNode,  // the same node would fail again
  kSmaller,    // the same micro-batch would not fit again
  kNever,
};
const char* OutlookName(Outlook outlook);

// What the classifier makes of one exit (coordinator/classify) or the core of what it saw for itself.
struct Diagnosis {
  std::string rule;  // the name of the rule that said so; empty: nothing has failed
  FailureClass failure_class = FailureClass::kNone;
  Outlook outlook = Outlook::kMayHelp;
  // Follows from another failure if there is one: a collective whose peer has gone.
  bool cascade = false;
  // Own limit of attempts after this failure, beside the budgets of classes; 0: the class's budget decides.
  int retries_most = 0;
  std::string budget;  // what shares that limit; the rule's name if it is alone
  double strike = 0;   // what it weighs against the node (core/node_ledger.h)
  std::string advice;  // what its user can do; may be empty
  bool operator==(const Diagnosis&) const = default;
};

}  // namespace llmctl
