#include "worker/data/tokenizer/byte_alphabet.h"

#include <array>

namespace llmctl::data {
namespace {

constexpr uint32_t kEnd = 0x144;

constexpr bool StandsForItself(uint32_t byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

constexpr std::array<uint16_t, 256> MakeCodePoints() {
  std::array<uint16_t, 256> code_points{};
  uint16_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    code_points[byte] = StandsForItself(byte) ? static_cast<uint16_t>(byte) : next++;
  }
  return code_points;
}

constexpr std::array<uint16_t, 256> kCodePoints = MakeCodePoints();

constexpr std::array<int16_t, kEnd> MakeBytes() {
  std::array<int16_t, kEnd> bytes{};
  for (int16_t& byte : bytes) byte = -1;
  for (uint32_t byte = 0; byte < 256; ++byte) bytes[kCodePoints[byte]] = static_cast<int16_t>(byte);
  return bytes;
}

constexpr std::array<int16_t, kEnd> kBytes = MakeBytes();

}  // namespace

uint32_t ByteToCodePoint(uint8_t byte) { return kCodePoints[byte]; }

std::string ToByteAlphabet(absl::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() + bytes.size() / 2);
  for (char c : bytes) {
    uint32_t code_point = ByteToCodePoint(static_cast<uint8_t>(c));
    if (code_point < 0x80) {
      out.push_back(static_cast<char>(code_point));
    } else {
      out.push_back(static_cast<char>(0xC0 | code_point >> 6));
      out.push_back(static_cast<char>(0x80 | (code_point & 0x3F)));
    }
  }
  return out;
}

absl::optional<std::string> FromByteAlphabet(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    uint32_t code_point = static_cast<uint8_t>(text[at]);
    if (code_point >= 0x80) {
      // The alphabet ends at U+0143: two bytes are the most.
      if ((code_point & 0xE0) != 0xC0 || ++at == text.size()) return absl::nullopt;
      code_point = (code_point & 0x1F) << 6 | (static_cast<uint8_t>(text[at]) & 0x3F);
    }
    if (code_point >= kEnd || kBytes[code_point] < 0) return absl::nullopt;
    out.push_back(static_cast<char>(kBytes[code_point]));
  }
  return out;
}

}  // namespace llmctl::data
