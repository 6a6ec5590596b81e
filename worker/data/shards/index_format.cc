#include "worker/data/shards/index_format.h"

#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace llmctl::data {
namespace {

static_assert(std::endian::native == std::endian::little, "indexes are written as they lie in memory");

constexpr absl::string_view kMagic("MMIDIDX\0\0", 9);
constexpr uint64_t kVersion = 1;

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

absl::StatusOr<TokenType> CheckFixedPart(absl::string_view idx) {
  if (idx.size() < kIndexHeadBytes) {
    return Damaged(absl::StrCat("has ", idx.size(), " bytes, a head has ", kIndexHeadBytes));
  }
  if (idx.substr(0, kMagic.size()) != kMagic) return Damaged("does not begin with MMIDIDX: no Megatron-LM index");
  uint64_t version = Load<uint64_t>(idx, 9);
  if (version != kVersion) return Damaged(absl::StrCat("has version ", version, ", expected ", kVersion));
  uint8_t code = static_cast<uint8_t>(idx[17]);
  if (code != static_cast<uint8_t>(TokenType::kUint16) && code != static_cast<uint8_t>(TokenType::kInt32)) {
    return Damaged(absl::StrCat("has token type code ", code, ", expected 8 (uint16) or 4 (int32)"));
  }
  return static_cast<TokenType>(code);
}

absl::Status CheckMarks(const IndexView& view) {
  int64_t before = 0;
  for (int64_t i = 0; i <= view.head().documents; ++i) {
    int64_t mark = view.mark(i);
    bool first = i == 0, last = i == view.head().documents;
    if (mark < before || (first && mark != 0) || (last && mark != view.head().sequences)) {
      return Damaged(absl::StrCat("document mark ", i, " is ", mark, ", out of order"));
    }
    before = mark;
  }
  return absl::OkStatus();
}

}  // namespace

int TokenBytes(TokenType type) { return type == TokenType::kUint16 ? 2 : 4; }

TokenType TokenTypeFor(int vocabulary_size) {
  // Megatron-LM's limit, a little below 2^16.
  return vocabulary_size < 65500 ? TokenType::kUint16 : TokenType::kInt32;
}

std::string EncodeIndexHead(const IndexHead& head) {
  std::string out(kMagic);
  Append(out, kVersion);
  Append(out, static_cast<uint8_t>(head.type));
  Append(out, static_cast<uint64_t>(head.sequences));
  Append(out, static_cast<uint64_t>(head.documents + 1));
  return out;
}

absl::StatusOr<IndexView> IndexView::Create(absl::string_view idx) {
  absl::StatusOr<TokenType> type = CheckFixedPart(idx);
  if (!type.ok()) return type.status();
  uint64_t sequences = Load<uint64_t>(idx, 18), marks = Load<uint64_t>(idx, 26);
  // Bounded first, so that the sums below cannot wrap.
  uint64_t limit = idx.size() / 8 + 1;
  uint64_t bytes = kIndexHeadBytes;
  if (sequences <= limit && marks <= limit) bytes += 12 * sequences + 8 * marks;
  bool plain = idx.size() == bytes, with_modes = sequences > 0 && idx.size() == bytes + sequences;
  if (sequences > limit || marks > limit || marks == 0 || !(plain || with_modes)) {
    return Damaged(absl::StrCat("has ", idx.size(), " bytes, which does not fit ", sequences, " sequences and ", marks,
                                " document marks"));
  }
  IndexView view;
  view.idx_ = idx;
  view.head_ = {*type, static_cast<int64_t>(sequences), static_cast<int64_t>(marks) - 1};
  view.has_modes_ = with_modes;
  return view;
}

int32_t IndexView::length(int64_t sequence) const { return Load<int32_t>(idx_, kIndexHeadBytes + 4 * sequence); }

int64_t IndexView::offset(int64_t sequence) const {
  return Load<int64_t>(idx_, kIndexHeadBytes + 4 * head_.sequences + 8 * sequence);
}

int64_t IndexView::mark(int64_t i) const {
  return Load<int64_t>(idx_, kIndexHeadBytes + 12 * head_.sequences + 8 * i);
}

bool IndexView::continues(int64_t sequence) const {
  return has_modes_ && idx_[kIndexHeadBytes + 12 * head_.sequences + 8 * (head_.documents + 1) + sequence] != 0;
}

absl::StatusOr<IndexSummary> CheckIndex(absl::string_view idx) {
  absl::StatusOr<IndexView> view = IndexView::Create(idx);
  if (!view.ok()) return view.status();
  const IndexHead& head = view->head();
  IndexSummary summary{head.type, head.sequences, head.documents, 0, 0};
  int64_t bytes = 0;
  for (int64_t i = 0; i < head.sequences; ++i) {
    int32_t length = view->length(i);
    if (length < 0) return Damaged(absl::StrCat("sequence ", i, " has length ", length));
    if (view->offset(i) != bytes) {
      return Damaged(absl::StrCat("sequence ", i, " starts at byte ", view->offset(i), ", expected ", bytes));
    }
    bytes += int64_t{length} * TokenBytes(head.type);
    summary.continued += view->continues(i) ? 1 : 0;
  }
  absl::Status marks = CheckMarks(*view);
  if (!marks.ok()) return marks;
  summary.tokens = bytes / TokenBytes(head.type);
  return summary;
}

}  // namespace llmctl::data
