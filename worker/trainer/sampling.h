// Choosing the next token from logits, and printing bytes that arrive in pieces.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace llmctl::trainer {

struct SamplingOptions {
  double temperature = 1;  // 0: the most likely token
  int top_k = 0;           // 0: all
};

// `uniform` in [0, 1) decides; the result is a pure function of the arguments.
int32_t SampleToken(const std::vector<float>& logits, const SamplingOptions& options, double uniform);

// Lets text through in whole UTF-8 characters: a model of bytes ends its tokens anywhere. What can never become
// a character is replaced by U+FFFD.
class Utf8Stream {
 public:
  // The characters that are complete now.
  std::string Push(absl::string_view bytes);
  // What is left at the end.
  std::string Finish();

 private:
  std::string pending_;  // the beginning of a character
};

}  // namespace llmctl::trainer
