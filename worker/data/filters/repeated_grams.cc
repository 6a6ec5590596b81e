#include "worker/data/filters/repeated_grams.h"

#include <algorithm>
#include <string>

#include "common/base/check.h"

namespace llmctl::data {
namespace {

// Spreads a pair of small numbers over all bits (the finaliser of MurmurHash3, A. Appleby).
uint64_t Spread(uint64_t key) {
  key ^= key >> 33;
  key *= 0xff51afd7ed558ccd;
  key ^= key >> 33;
  key *= 0xc4ceb9fe1a85ec53;
  return key ^ key >> 33;
}

}  // namespace

void RepeatedGrams::Begin(absl::Span<const uint32_t> words, const WordReader& reader) {
  words_ = words;
  reader_ = &reader;
  n_ = 1;
  text_hashes_n_ = 0;
  characters_.resize(words.size() + 1);
  places_.resize(words.size());
  int64_t characters = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    characters_[i] = characters;
    characters += reader.word(words[i]).characters;
    places_[i] = i;
  }
  characters_[words.size()] = characters;
  grams_.assign(words.begin(), words.end());
}

void RepeatedGrams::BeginRound(size_t entries) {
  size_t size = 64;
  while (size < 2 * entries) size *= 2;
  if (size > slots_.size()) slots_.resize(size);
  mask_ = size - 1;
  if (++round_ == 0) {  // numbers are used up: old slots would look like new ones
    std::fill(slots_.begin(), slots_.end(), Slot());
    round_ = 1;
  }
}

RepeatedGrams::Slot& RepeatedGrams::Find(uint64_t key) {
  size_t at = Spread(key) & mask_;
  while (slots_[at].round == round_ && slots_[at].key != key) at = (at + 1) & mask_;
  return slots_[at];
}

void RepeatedGrams::Advance() {
  ++n_;
  BeginRound(places_.size());
  all_grams_.clear();
  size_t count = 0;
  for (size_t i = 0; i < places_.size(); ++i) {
    uint32_t place = places_[i];
    if (place + n_ > words_.size()) break;
    Slot& slot = Find(static_cast<uint64_t>(grams_[i]) << 32 | words_[place + n_ - 1]);
    if (slot.round != round_) {
      slot.key = static_cast<uint64_t>(grams_[i]) << 32 | words_[place + n_ - 1];
      slot.round = round_;
      slot.value = all_grams_.size();
      all_grams_.push_back({0, place});
    }
    ++all_grams_[slot.value].count;
    places_[count] = place;
    grams_[count++] = slot.value;
  }
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    if (all_grams_[grams_[i]].count < 2) continue;
    places_[kept] = places_[i];
    grams_[kept++] = grams_[i];
  }
  places_.resize(kept);
  grams_.resize(kept);
}

int64_t RepeatedGrams::TopCharacters() const {
  if (words_.size() < n_) return 0;
  // Where none is repeated all are equally frequent, and the first in the text is the first of them.
  Gram top = {1, 0};
  for (const Gram& gram : all_grams_) {
    if (gram.count > top.count) top = gram;
  }
  return (Characters(top.first, n_) + static_cast<int64_t>(n_) - 1) * top.count;
}

int64_t RepeatedGrams::RepeatedCharacters() {
  seen_.assign(all_grams_.size(), false);
  int64_t repeated = 0;
  size_t next = 0;
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i] < next) continue;
    if (seen_[grams_[i]]) {
      repeated += Characters(places_[i], n_);
      next = places_[i] + n_;
    } else {
      seen_[grams_[i]] = true;
    }
  }
  return repeated;
}

void RepeatedGrams::ExtendTextHashes() {
  if (text_hashes_n_ == 0) text_hashes_.assign(words_.size(), 0);
  for (; text_hashes_n_ < n_; ++text_hashes_n_) {
    for (size_t i = 0; i + text_hashes_n_ < words_.size(); ++i) {
      const Word& word = reader_->word(words_[i + text_hashes_n_]);
      text_hashes_[i] = AddModPrime(MultiplyModPrime(text_hashes_[i], word.power), word.hash);
    }
  }
}

bool RepeatedGrams::SameText(size_t a, size_t b) const {
  if (std::equal(words_.begin() + a, words_.begin() + a + n_, words_.begin() + b)) return true;
  std::string texts[2];
  for (size_t i = 0; i < n_; ++i) {
    absl::string_view left = reader_->word(words_[a + i]).text;
    absl::string_view right = reader_->word(words_[b + i]).text;
    texts[0].append(left.data(), left.size());
    texts[1].append(right.data(), right.size());
  }
  return texts[0] == texts[1];
}

int64_t RepeatedGrams::RepeatedCharactersAsText() {
  if (words_.size() < n_) return 0;
  CHECK(text_hashes_n_ <= n_) << "n-grams are asked for in ascending order";
  ExtendTextHashes();
  BeginRound(words_.size());
  int64_t repeated = 0;
  size_t place = 0;
  while (place + n_ <= words_.size()) {
    Slot& slot = Find(text_hashes_[place]);
    bool known = slot.round == round_;
    if (known && SameText(slot.value, place)) {
      repeated += Characters(place, n_);
      place += n_;
      continue;
    }
    if (!known) {
      slot.key = text_hashes_[place];
      slot.value = place;
      slot.round = round_;
    }
    ++place;
  }
  return repeated;
}

}  // namespace llmctl::data
