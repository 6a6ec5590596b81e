#include "worker/data/command/command.h"

#include <iostream>

namespace llmctl::data {

int Report(const absl::Status& status) {
  if (status.ok()) return kOk;
  std::cerr << "llm-data: " << status.message() << "\n";
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument: return kUsage;
    case absl::StatusCode::kNotFound: return kNotFound;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition: return kConflict;
    default: return kOther;
  }
}

}  // namespace llmctl::data
