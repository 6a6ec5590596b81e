#include "worker/data/tokenizer/bpe_encoder.h"

#include <algorithm>
#include <array>

#include "worker/data/tokenizer/nfc.h"

namespace llmctl::data {
namespace {

constexpr size_t kBlock = 4096;  // ids

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
      cache_(tokenizer.encoder_cache_),
      merger_(tokenizer.merges_),
      block_(kBlock + PieceCache::kIdsMax) {}

void BpeEncoder::Encode(absl::string_view text, std::vector<int32_t>& out) {
  SplitByAdded(tokenizer_.added_, text, out, [&](absl::string_view part) {
    if (tokenizer_.definition_.nfc && !IsNfc(part)) {
      normalized_ = ToNfc(part);
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
    // A piece gives at most an id a byte, one from the cache writes kIdsMax.
    if (filled + std::max(bytes, PieceCache::kIdsMax) > block_.size()) {
      out.insert(out.end(), block_.begin(), block_.begin() + filled);
      filled = 0;
      if (bytes > block_.size()) block_.resize(bytes);
    }
    int32_t* ids = block_.data() + filled;
    if (bytes > PieceKey::kBytesMax) {
      filled += EncodeNewPiece({at, bytes}, ids);
    } else {
      PieceCache::Entry entry;
      entry.key = PieceKey::Of(at, bytes, end);
      if (const PieceCache::Entry* found = cache_.Find(entry.key)) {
        std::copy(found->ids.begin(), found->ids.end(), ids);
        filled += 4 - (ids[1] < 0) - (ids[2] < 0) - (ids[3] < 0);
      } else {
        size_t count = EncodeNewPiece({at, bytes}, ids);
        if (count <= PieceCache::kIdsMax) {
          std::copy(ids, ids + count, entry.ids.begin());
          cache_.Insert(entry);
        }
        filled += count;
      }
    }
    at = next;
  }
  out.insert(out.end(), block_.begin(), block_.begin() + filled);
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
