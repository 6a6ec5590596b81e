#include "coordinator/model/failure.h"

namespace llmctl {

const char* FailureClassName(FailureClass c) {
  switch (c) {
    case FailureClass::kNone: return "";
    case FailureClass::kUser: return "user";
    case FailureClass::kInfrastructure: return "infrastructure";
    case FailureClass::kScheduler: return "scheduler";
    case FailureClass::kUnknown: return "unknown";
  }
  return "?";
}

const char* OutlookName(Outlook outlook) {
  switch (outlook) {
    case Outlook::kMayHelp: return "may-help";
    case Outlook::kOtherNode: return "other-node";
    case Outlook::kSmaller: return "smaller";
    case Outlook::kNever: return "never";
  }
  return "?";
}

}  // namespace llmctl
