// The smallest valid job specification, as text to damage and as a message.
#pragma once

#include <string>

#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace llmctl::spec {

inline std::string ValidYaml() {
  return "apiVersion: llmctl/v1\n"      // 1
         "kind: TrainingJob\n"          // 2
         "metadata:\n"                  // 3
         "  name: tiny\n"               // 4
         "model:\n"                     // 5
         "  architecture: llama\n"      // 6
         "  layers: 4\n"                // 7
         "  hiddenSize: 256\n"          // 8
         "  heads: 4\n"                 // 9
         "data:\n"                      // 10
         "  dataset: data\n"            // 11
         "  sequenceLength: 256\n"      // 12
         "training:\n"                  // 13
         "  steps: 600\n"               // 14
         "  globalBatchSize: 16\n"      // 15
         "  microBatchSize: 8\n"        // 16
         "checkpoint:\n"                // 17
         "  directory: checkpoints\n";  // 18
}

// ValidYaml() with one piece of text replaced.
inline std::string Damaged(absl::string_view from, absl::string_view to) {
  return absl::StrReplaceAll(ValidYaml(), {{from, to}});
}

}  // namespace llmctl::spec
