// `llm-trainer generate`: continues a text with the weights of a checkpoint.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "worker/engine/kernels/isa.h"
#include "worker/trainer/sampling.h"

namespace llmctl::trainer {

struct GenerateOptions {
  std::string checkpoint;  // directory
  std::string dataset;     // directory: its manifest names the tokenizer
  std::string prompt;
  int64_t tokens = 200;
  int64_t context = 256;  // tokens that the model looks back on
  SamplingOptions sampling;
  uint64_t seed = 1;
  std::string precision = "fp32";
  engine::kernels::Isa isa = engine::kernels::Isa::kBest;
};

// `print` gets the continuation in whole characters, as it comes. Ends early at the end of a document.
absl::Status Generate(const GenerateOptions& options, const std::function<void(absl::string_view)>& print);

}  // namespace llmctl::trainer
