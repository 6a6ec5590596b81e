#include "common/archive/tar.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include "common/base/check.h"
#include "common/base/status.h"

namespace llmctl::archive {
namespace {

constexpr size_t kBlock = 512;

struct Header {
  char name[100] = {};
  char mode[8] = {};
  char owner[8] = {};
  char group[8] = {};
  char size[12] = {};
  char modified[12] = {};
  char checksum[8] = {};
  char type = '0';
  char link[100] = {};
  char magic[6] = {'u', 's', 't', 'a', 'r', '\0'};
  char version[2] = {'0', '0'};
  char rest[247] = {};
};
static_assert(sizeof(Header) == kBlock);

template <size_t n>
void Octal(uint64_t value, char (&out)[n]) {
  std::string text = absl::StrFormat("%0*o", static_cast<int>(n) - 1, value);
  std::memcpy(out, text.data(), std::min(text.size(), n - 1));
}

template <size_t n>
bool ReadOctal(const char (&field)[n], uint64_t& value) {
  value = 0;
  for (char digit : field) {
    if (digit == '\0' || digit == ' ') return true;
    if (digit < '0' || digit > '7') return false;
    value = value * 8 + static_cast<uint64_t>(digit - '0');
  }
  return true;
}

// The sum of the header's bytes with its own field taken as spaces.
uint64_t Checksum(Header header) {
  std::memset(header.checksum, ' ', sizeof header.checksum);
  const auto* bytes = reinterpret_cast<const unsigned char*>(&header);
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) sum += bytes[i];
  return sum;
}

size_t Padding(size_t bytes) { return (kBlock - bytes % kBlock) % kBlock; }

absl::Status Damaged(size_t at, absl::string_view problem) {
  return absl::DataLossError(absl::StrCat("tar archive: at byte ", at, ": ", problem));
}

bool StaysInside(absl::string_view name) {
  if (name.empty() || name.front() == '/') return false;
  std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
  return std::find(parts.begin(), parts.end(), "..") == parts.end();
}

}  // namespace

std::string WriteTar(const std::vector<File>& files, absl::Time modified) {
  std::string out;
  for (const File& file : files) {
    CHECK_LT(file.name.size(), sizeof Header::name) << file.name << " is too long for a tar header";
    Header header;
    std::memcpy(header.name, file.name.data(), file.name.size());
    Octal(0600, header.mode);
    Octal(0, header.owner);
    Octal(0, header.group);
    Octal(file.content.size(), header.size);
    Octal(static_cast<uint64_t>(std::max<int64_t>(absl::ToUnixSeconds(modified), 0)), header.modified);
    std::string checksum = absl::StrFormat("%06o", Checksum(header));
    std::memcpy(header.checksum, checksum.data(), 6);
    header.checksum[6] = '\0';
    header.checksum[7] = ' ';
    out.append(reinterpret_cast<const char*>(&header), kBlock);
    out += file.content;
    out.append(Padding(file.content.size()), '\0');
  }
  out.append(2 * kBlock, '\0');
  return out;
}

absl::StatusOr<std::vector<File>> ReadTar(absl::string_view bytes) {
  std::vector<File> files;
  size_t at = 0;
  while (true) {
    if (bytes.size() < at + kBlock) return Damaged(at, "it ends without an end mark");
    Header header;
    std::memcpy(static_cast<void*>(&header), bytes.data() + at, kBlock);
    if (header.name[0] == '\0') return files;
    uint64_t checksum = 0, size = 0;
    if (std::memcmp(header.magic, Header().magic, 5) != 0 || !ReadOctal(header.checksum, checksum) ||
        checksum != Checksum(header) || !ReadOctal(header.size, size)) {
      return Damaged(at, "no header of a file");
    }
    std::string name(header.name, strnlen(header.name, sizeof header.name));
    if (header.type != '0' || !StaysInside(name)) return Damaged(at, absl::StrCat("not a plain file: ", name));
    at += kBlock;
    if (size > bytes.size() - at) return Damaged(at, absl::StrCat("it ends in the midst of ", name));
    files.push_back({std::move(name), std::string(bytes.substr(at, size))});
    at += size + Padding(size);
  }
}

}  // namespace llmctl::archive
