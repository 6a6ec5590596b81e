#include "worker/data/dedup/shingle_source.h"

#include <algorithm>

#include "worker/data/dedup/word_hasher.h"

namespace llmctl::data {
namespace {

// Words at a time: their hashes and shingles fit the first-level cache.
constexpr size_t kBlockWords = 1024;

}  // namespace

int64_t FastShingles::Read(absl::string_view text, ShingleScratch& scratch, Sink sink) const {
  const size_t carried_max = shingle_words_ - 1;
  scratch.word_hashes.resize(carried_max + kBlockWords);
  scratch.shingles.resize(kBlockWords);
  WordHasher words(characters_, text);
  int64_t total = 0;
  size_t carried = 0;  // words of the block before, that shingles of this one begin with
  uint64_t* hashes = scratch.word_hashes.data();
  while (size_t found = words.Next(hashes + carried, kBlockWords)) {
    total += found;
    size_t held = carried + found;
    if (held >= shingle_words_) {
      size_t count = held - carried_max;
      kernels_.shingle(hashes, count, shingle_words_, scratch.shingles.data());
      sink({scratch.shingles.data(), count});
    }
    carried = std::min(held, carried_max);
    std::copy(hashes + held - carried, hashes + held, hashes);
  }
  return total;
}

}  // namespace llmctl::data
