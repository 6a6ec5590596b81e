// Numbers and texts as bytes: little-endian, varints as in Protocol Buffers.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

namespace llmctl::data {

inline void PutFixed32(uint32_t value, std::string& out) { out.append(reinterpret_cast<const char*>(&value), 4); }
inline void PutFixed64(uint64_t value, std::string& out) { out.append(reinterpret_cast<const char*>(&value), 8); }
inline void PutDouble(double value, std::string& out) { out.append(reinterpret_cast<const char*>(&value), 8); }
inline void PutVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}
inline void PutBytes(absl::string_view bytes, std::string& out) {
  PutVarint(bytes.size(), out);
  out.append(bytes.data(), bytes.size());
}

// Reads what the functions above wrote, in the same order. After the first thing that is cut everything is zero or
// empty, and ok() is false.
class WireReader {
 public:
  explicit WireReader(absl::string_view bytes) : rest_(bytes) {}

  uint32_t Fixed32() { return Fixed<uint32_t>(); }
  uint64_t Fixed64() { return Fixed<uint64_t>(); }
  double Double() { return Fixed<double>(); }
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) break;
      auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    Fail();
    return 0;
  }
  absl::string_view Bytes() {
    uint64_t size = Varint();
    if (size > rest_.size()) Fail();
    if (!ok_) return {};
    absl::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  bool ok() const { return ok_; }
  absl::string_view rest() const { return rest_; }

 private:
  template <typename T>
  T Fixed() {
    T value{};
    if (rest_.size() < sizeof(T)) Fail();
    if (!ok_) return value;
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_.remove_prefix(sizeof(T));
    return value;
  }
  void Fail() {
    ok_ = false;
    rest_ = {};
  }

  absl::string_view rest_;
  bool ok_ = true;
};

}  // namespace llmctl::data
