#include "worker/data/tokenizer/bpe_encoder.h"

#include <algorithm>
#include <array>

#include "worker/data/text/unicode_form.h"

namespace llmctl::data {
namespace {

constexpr size_t kBlock = 4096;      // ids
constexpr size_t kIdsFromCache = 8;  // written at a time, of which the first may count

// Calls `plain` with the text between the matches of `finder`, and appends the ids of these.
template <typename Plain>
void SplitByAdded(const AddedTokenFinder& finder, absl::string_view text, std::vector<int32_t>& out, Plain plain) {
  size_t from = 0;
  if (!finder.empty()) {
    while (absl::optional<AddedTokenFinder::Match> match = finder.Find(text, from)) {
      plain(text.substr(from, match->begin - from));
      out.push_back(match->id);
      from = match->end;
    }
  }
  plain(text.substr(from));
}

}  // namespace

BpeEncoder::BpeEncoder(const BpeTokenizer& tokenizer)
    : tokenizer_(tokenizer),
      short_pieces_(tokenizer.encoder_cache_ / 2),
      longer_pieces_(tokenizer.encoder_cache_ / 2),
      merger_(tokenizer.merges_),
      block_(kBlock) {}

void BpeEncoder::Encode(absl::string_view text, std::vector<int32_t>& out) {
  SplitByAdded(tokenizer_.added_, text, out, [&](absl::string_view part) {
    if (tokenizer_.definition_.nfc && !IsInForm(UnicodeForm::kNfc, part)) {
      normalized_ = ToForm(UnicodeForm::kNfc, part);
      part = normalized_;
    }
    EncodeNormalized(part, out);
  });
}

void BpeEncoder::EncodeNormalized(absl::string_view text, std::vector<int32_t>& out) {
  SplitByAdded(tokenizer_.added_normalized_, text, out,
               [&](absl::string_view part) { EncodePieces(part, out); });
}

void BpeEncoder::EncodePieces(absl::string_view text, std::vector<int32_t>& out) {
  const char* at = text.data();
  const char* end = at + text.size();
  size_t filled = 0;
  while (at < end) {
    const char* next = tokenizer_.pre_tokenizer_.PieceEnd(at, end);
    size_t bytes = static_cast<size_t>(next - at);
    // A piece gives at most an id a byte, or what a cache writes.
    if (filled + std::max(bytes, kIdsFromCache) > block_.size()) {
      out.insert(out.end(), block_.begin(), block_.begin() + filled);
      filled = 0;
      if (bytes > block_.size()) block_.resize(bytes);
    }
    absl::string_view piece(at, bytes);
    int32_t* ids = block_.data() + filled;
    if (bytes <= decltype(short_pieces_)::Key::kBytesMax) {
      filled += EncodePiece(short_pieces_, piece, end, ids);
    } else if (bytes <= decltype(longer_pieces_)::Key::kBytesMax) {
      filled += EncodePiece(longer_pieces_, piece, end, ids);
    } else {
      filled += EncodeNewPiece(piece, ids);
    }
    at = next;
  }
  out.insert(out.end(), block_.begin(), block_.begin() + filled);
}

template <typename Cache>
size_t BpeEncoder::EncodePiece(Cache& cache, absl::string_view piece, const char* text_end, int32_t* out) {
  static_assert(Cache::kIdsMax <= kIdsFromCache);
  typename Cache::Entry entry;
  entry.key = Cache::Key::Of(piece.data(), piece.size(), text_end);
  if (const typename Cache::Entry* found = cache.Find(entry.key)) {
    std::copy(found->ids.begin(), found->ids.end(), out);
    size_t count = 1;
    for (size_t i = 1; i < Cache::kIdsMax; ++i) count += found->ids[i] >= 0;
    return count;
  }
  size_t count = EncodeNewPiece(piece, out);
  if (count <= Cache::kIdsMax) {
    std::copy(out, out + count, entry.ids.begin());
    cache.Insert(entry);
  }
  return count;
}

size_t BpeEncoder::EncodeNewPiece(absl::string_view piece, int32_t* out) {
  if (tokenizer_.definition_.ignore_merges) {
    auto whole = tokenizer_.whole_pieces_.find(piece);
    if (whole != tokenizer_.whole_pieces_.end()) {
      *out = whole->second;
      return 1;
    }
  }
  return merger_.Merge(piece, out);
}

}  // namespace llmctl::data
