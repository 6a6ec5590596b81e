#include "common/spec/utf8.h"

#include <cstdint>

#include "absl/strings/str_format.h"

namespace llmctl::spec {
namespace {

// Bytes of the character at the front; 0 if it is ill-formed. The Unicode standard's table 3-7.
size_t CharacterBytes(absl::string_view text) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  size_t bytes = lead >= 0xC2 && lead <= 0xDF ? 2 : (lead & 0xF0) == 0xE0 ? 3 : lead >= 0xF0 && lead <= 0xF4 ? 4 : 0;
  if (bytes == 0 || text.size() < bytes) return 0;
  uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return bytes;
}

}  // namespace

std::optional<BadCharacter> FindBadCharacter(absl::string_view line) {
  for (int column = 1; !line.empty(); ++column) {
    auto lead = static_cast<uint8_t>(line[0]);
    if ((lead < 0x20 && lead != '\t' && lead != '\r') || lead == 0x7F) {
      return BadCharacter{column, absl::StrFormat("the control character 0x%02x", lead)};
    }
    size_t bytes = CharacterBytes(line);
    if (bytes == 0) return BadCharacter{column, absl::StrFormat("the byte 0x%02x, which is not UTF-8 here", lead)};
    line.remove_prefix(bytes);
  }
  return std::nullopt;
}

}  // namespace llmctl::spec
