// The byte-level alphabet: each byte as one printable character, so that any bytes can stand in JSON.
//
// GPT-2's: '!'..'~', U+00A1..U+00AC and U+00AE..U+00FF stand for themselves, the 68 others for U+0100 on, in order.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace llmctl::data {

// At most U+0143.
uint32_t ByteToCodePoint(uint8_t byte);

// `bytes`, each as its character, in UTF-8.
std::string ToByteAlphabet(absl::string_view bytes);

// The bytes that `text` stands for; nullopt if a character is not of the alphabet.
absl::optional<std::string> FromByteAlphabet(absl::string_view text);

}  // namespace llmctl::data
