#include "worker/data/shards/index_format.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace llmctl::data {
namespace {

static_assert(std::endian::native == std::endian::little, "indexes are written as they lie in memory");

constexpr absl::string_view kMagic("MMIDIDX\0\0", 9);
constexpr uint64_t kVersion = 1;
constexpr size_t kHeadBytes = 34;

template <typename T>
void Append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
T Load(absl::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

absl::Status Damaged(absl::string_view what) { return absl::DataLossError(absl::StrCat("index: ", what)); }

struct Counts {
  TokenType type;
  uint64_t sequences;
  uint64_t document_marks;  // documents + 1
};

absl::StatusOr<Counts> CheckHead(absl::string_view idx) {
  if (idx.size() < kHeadBytes) return Damaged(absl::StrCat("has ", idx.size(), " bytes, a head has ", kHeadBytes));
  if (idx.substr(0, kMagic.size()) != kMagic) return Damaged("does not begin with MMIDIDX: no Megatron-LM index");
  uint64_t version = Load<uint64_t>(idx, 9);
  if (version != kVersion) return Damaged(absl::StrCat("has version ", version, ", expected ", kVersion));
  uint8_t code = static_cast<uint8_t>(idx[17]);
  if (code != static_cast<uint8_t>(TokenType::kUint16) && code != static_cast<uint8_t>(TokenType::kInt32)) {
    return Damaged(absl::StrCat("has token type code ", code, ", expected 8 (uint16) or 4 (int32)"));
  }
  Counts counts{static_cast<TokenType>(code), Load<uint64_t>(idx, 18), Load<uint64_t>(idx, 26)};
  // Bounded first, so that the sum below cannot wrap.
  uint64_t limit = idx.size() / 8 + 1;
  bool fits = counts.sequences <= limit && counts.document_marks <= limit &&
              idx.size() == kHeadBytes + 12 * counts.sequences + 8 * counts.document_marks;
  if (fits && counts.document_marks > 0) return counts;
  return Damaged(absl::StrCat("has ", idx.size(), " bytes, which does not fit ", counts.sequences, " sequences and ",
                              counts.document_marks, " document marks"));
}

}  // namespace

int TokenBytes(TokenType type) { return type == TokenType::kUint16 ? 2 : 4; }

TokenType TokenTypeFor(int vocabulary_size) {
  // Megatron-LM's limit, a little below 2^16.
  return vocabulary_size < 65500 ? TokenType::kUint16 : TokenType::kInt32;
}

absl::StatusOr<IndexSummary> CheckIndex(absl::string_view idx) {
  absl::StatusOr<Counts> counts = CheckHead(idx);
  if (!counts.ok()) return counts.status();
  size_t offsets_at = kHeadBytes + 4 * counts->sequences;
  size_t marks_at = kHeadBytes + 12 * counts->sequences;
  int64_t bytes = 0;
  for (uint64_t i = 0; i < counts->sequences; ++i) {
    int32_t length = Load<int32_t>(idx, kHeadBytes + 4 * i);
    int64_t offset = Load<int64_t>(idx, offsets_at + 8 * i);
    if (length < 0) return Damaged(absl::StrCat("sequence ", i, " has length ", length));
    if (offset != bytes) {
      return Damaged(absl::StrCat("sequence ", i, " starts at byte ", offset, ", expected ", bytes));
    }
    bytes += int64_t{length} * TokenBytes(counts->type);
  }
  int64_t before = 0;
  for (uint64_t i = 0; i < counts->document_marks; ++i) {
    int64_t mark = Load<int64_t>(idx, marks_at + 8 * i);
    bool first = i == 0, last = i + 1 == counts->document_marks;
    if (mark < before || (first && mark != 0) || (last && mark != static_cast<int64_t>(counts->sequences))) {
      return Damaged(absl::StrCat("document mark ", i, " is ", mark, ", out of order"));
    }
    before = mark;
  }
  return IndexSummary{counts->type, static_cast<int64_t>(counts->document_marks) - 1, bytes / TokenBytes(counts->type)};
}

std::string IndexText::Head() const {
  std::string out(kMagic);
  Append(out, kVersion);
  Append(out, static_cast<uint8_t>(type_));
  Append(out, static_cast<uint64_t>(lengths_.size()));
  Append(out, static_cast<uint64_t>(lengths_.size() + 1));
  return out;
}

std::string IndexText::Piece(Part part, size_t at, int64_t& offset) const {
  std::string out;
  size_t end = std::min(Count(part), at + kPiece);
  for (size_t i = at; i < end; ++i) {
    switch (part) {
      case Part::kLengths: Append(out, lengths_[i]); break;
      case Part::kOffsets:
        Append(out, offset);
        offset += int64_t{lengths_[i]} * TokenBytes(type_);
        break;
      case Part::kDocuments: Append(out, static_cast<int64_t>(i)); break;
    }
  }
  return out;
}

}  // namespace llmctl::data
