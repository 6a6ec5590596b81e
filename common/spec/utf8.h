// Text that people sent: is it UTF-8, and free of characters that no text has?
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace llmctl::spec {

struct BadCharacter {
  int column = 0;     // 1-based, in characters
  std::string found;  // "the byte 0xff", "the control character 0x00"
};

// The first ill-formed byte (overlong forms and surrogates count) or control character other than tab and
// carriage return in `line`.
std::optional<BadCharacter> FindBadCharacter(absl::string_view line);

}  // namespace llmctl::spec
