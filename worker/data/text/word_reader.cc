#include "worker/data/text/word_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <xxhash.h>

#include "worker/data/text/utf8.h"

namespace llmctl::data {
namespace {

constexpr size_t kSlotsAtFirst = 4096;
constexpr size_t kBlockBytes = size_t{64} << 10;
// Longer chunks (text without spaces, encoded data) hardly come twice.
constexpr size_t kRememberedBytesMax = 64;
// Any number below the prime that is no small power will do; part of no format.
constexpr uint64_t kHashBase = 0x0b4a6f1c3d5e7923;

uint64_t Load64(const char* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

uint64_t Load32(const char* at) {
  uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

uint64_t Mix(uint64_t a, uint64_t b) {
  unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Most words are short: two overlapping loads take all of them in.
uint64_t HashText(absl::string_view text) {
  const char* at = text.data();
  size_t size = text.size();
  uint64_t a, b;
  if (size > 16) return XXH3_64bits(at, size);
  if (size >= 8) {
    a = Load64(at);
    b = Load64(at + size - 8);
  } else if (size >= 4) {
    a = Load32(at);
    b = Load32(at + size - 4);
  } else {
    a = size == 0 ? 0 : static_cast<uint8_t>(at[0]) << 16 | static_cast<uint8_t>(at[size / 2]) << 8;
    b = size == 0 ? 0 : static_cast<uint8_t>(at[size - 1]);
  }
  return Mix(a ^ 0x9e3779b97f4a7c15 ^ size, b ^ 0xd1b54a32d192ed03);
}

}  // namespace

WordReader::WordReader(const WordSplitter& splitter, Options options)
    : table_(CharacterTable::Get()), splitter_(splitter), joins_(splitter), options_(std::move(options)) {
  for (const std::string& word : options_.marked_words) marks_.try_emplace(word, marks_.size() + 1);
  Reset();
}

void WordReader::Reset() {
  chunks_.assign(kSlotsAtFirst, Chunk());
  slots_.assign(kSlotsAtFirst, Slot());
  chunk_count_ = 0;
  chunk_tokens_.clear();
  words_.assign(1, Word());
  texts_.clear();
  bytes_ = 0;
}

void WordReader::Begin() {
  if (bytes_ > options_.bytes_max) Reset();
}

absl::string_view WordReader::Keep(absl::string_view text) {
  if (texts_.empty() || texts_.back().capacity() - texts_.back().size() < text.size()) {
    texts_.emplace_back();
    texts_.back().reserve(std::max(kBlockBytes, text.size()));
  }
  std::string& block = texts_.back();
  size_t at = block.size();
  block.append(text.data(), text.size());
  bytes_ += text.size();
  return absl::string_view(block).substr(at);
}

void WordReader::GrowSlots() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.id == 0) continue;
    size_t at = slot.hash & (slots_.size() - 1);
    while (slots_[at].id != 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = slot;
  }
}

void WordReader::GrowChunks() {
  std::vector<Chunk> old(chunks_.size() * 2);
  old.swap(chunks_);
  for (const Chunk& chunk : old) {
    if (chunk.count == 0) continue;
    size_t at = chunk.hash & (chunks_.size() - 1);
    while (chunks_[at].count != 0) at = (at + 1) & (chunks_.size() - 1);
    chunks_[at] = chunk;
  }
}

Word WordReader::Describe(absl::string_view text) const {
  Word word;
  word.text = text;
  word.part = joins_.PartOf(text);
  auto mark = marks_.find(text);
  word.mark = mark == marks_.end() ? 0 : mark->second;
  word.power = 1;
  bool punctuation = true;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    const char* start = at;
    uint32_t classes = table_.ClassesOf(NextCodePoint(at));
    ++word.characters;
    if (classes & kLetter) word.traits |= Word::kHasLetter;
    if (!(classes & kSymbol)) word.traits |= Word::kHasNonSymbol;
    if ((classes & kSentenceEnd) && start == text.data() && at == end) word.traits |= Word::kEndsSentence;
    punctuation = punctuation && (classes & kPunctuation);
    for (; start < at; ++start) {
      word.hash = AddModPrime(MultiplyModPrime(word.hash, kHashBase), static_cast<uint8_t>(*start) + 1);
      word.power = MultiplyModPrime(word.power, kHashBase);
    }
  }
  if (punctuation) word.traits |= Word::kIsPunctuation;
  return word;
}

uint32_t WordReader::IdOf(absl::string_view text) {
  uint64_t hash = HashText(text);
  size_t at = hash & (slots_.size() - 1);
  for (; slots_[at].id != 0; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].hash == hash && words_[slots_[at].id].text == text) return slots_[at].id;
  }
  uint32_t id = words_.size();
  slots_[at] = {hash, id};
  words_.push_back(Describe(Keep(text)));
  bytes_ += sizeof(Word) + 2 * sizeof(Slot);
  if (2 * words_.size() > slots_.size()) GrowSlots();
  return id;
}

// Appends the tokens of `chunk`.
void WordReader::SplitChunk(absl::string_view chunk) {
  pieces_.clear();
  splitter_.SplitChunk(chunk, pieces_);
  uint32_t start = kStartsChunk;
  for (absl::string_view piece : pieces_) {
    uint32_t id = IdOf(piece);
    tokens_.push_back(id | start | (words_[id].part != 0 ? kIsPart : 0));
    start = 0;
  }
}

void WordReader::ReadChunk(absl::string_view chunk) {
  if (chunk.size() > kRememberedBytesMax) return SplitChunk(chunk);
  uint64_t hash = HashText(chunk);
  size_t at = hash & (chunks_.size() - 1);
  for (; chunks_[at].count != 0; at = (at + 1) & (chunks_.size() - 1)) {
    const Chunk& known = chunks_[at];
    if (known.hash != hash || known.size != chunk.size() || std::memcmp(known.text, chunk.data(), known.size) != 0) {
      continue;
    }
    const uint32_t* tokens = chunk_tokens_.data() + known.first;
    for (uint32_t i = 0; i < known.count; ++i) tokens_.push_back(tokens[i]);
    return;
  }
  size_t first = tokens_.size();
  SplitChunk(chunk);
  absl::string_view kept = Keep(chunk);
  uint32_t count = tokens_.size() - first;
  chunks_[at] = {hash, kept.data(), static_cast<uint32_t>(kept.size()), static_cast<uint32_t>(chunk_tokens_.size()),
                 count};
  chunk_tokens_.insert(chunk_tokens_.end(), tokens_.begin() + first, tokens_.end());
  bytes_ += 2 * sizeof(Chunk) + count * sizeof(uint32_t);
  if (2 * ++chunk_count_ > chunks_.size()) GrowChunks();
}

void WordReader::ReadTokens(absl::string_view text) {
  tokens_.clear();
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    const char* start = at;
    // One space behind a chunk separates; any other white space is a token.
    if (*at == ' ' && at != text.data()) start = ++at;
    while (at < end && table_.MayStartSpace(*at)) {
      const char* next = at;
      if (!table_.Is(NextCodePoint(next), kSpace)) break;
      at = next;
    }
    if (at > start) tokens_.push_back(kBlank);
    if (at == end) break;
    size_t size = table_.FindSpace(absl::string_view(at, end - at));
    ReadChunk(absl::string_view(at, size));
    at += size;
  }
  JoinTokens();
}

// Joins in runs of two or more words that occur in joins: all others end a run.
void WordReader::JoinTokens() {
  joined_.clear();
  size_t copied = 0;  // how many tokens joined_ stands for
  for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
    if ((tokens_[i] & tokens_[i + 1] & kIsPart) == 0) continue;
    size_t end = i + 2;
    while (end < tokens_.size() && (tokens_[end] & kIsPart) != 0) ++end;
    if (MayJoin(i, end)) copied = JoinRun(i, end, copied);
    i = end - 1;
  }
  if (copied == 0) return;
  joined_.insert(joined_.end(), tokens_.begin() + copied, tokens_.end());
  tokens_.swap(joined_);
}

bool WordReader::MayJoin(size_t first, size_t end) const {
  for (size_t i = first; i + 1 < end; ++i) {
    bool glued = (tokens_[i + 1] & kStartsChunk) == 0;
    if (glued && joins_.MayBegin(words_[tokens_[i] & kIdMask].part, words_[tokens_[i + 1] & kIdMask].part)) return true;
  }
  return false;
}

// Appends to joined_ what becomes of the tokens from `copied` to the last join in the run; returns where that ends.
size_t WordReader::JoinRun(size_t first, size_t end, size_t copied) {
  std::vector<int> parts;
  std::vector<bool> glued;
  for (size_t i = first; i < end; ++i) {
    parts.push_back(words_[tokens_[i] & kIdMask].part);
    glued.push_back((tokens_[i] & kStartsChunk) == 0);
  }
  for (const WordJoins::Place& place : joins_.Find(parts, glued)) {
    joined_.insert(joined_.end(), tokens_.begin() + copied, tokens_.begin() + first + place.first);
    for (const std::string& word : splitter_.joins()[place.join].to) joined_.push_back(IdOf(word));
    copied = first + place.first + place.count;
  }
  return copied;
}

void WordReader::ReadWords(absl::string_view text, std::vector<uint32_t>& words) {
  ReadTokens(text);
  words.resize(tokens_.size());
  size_t count = 0;
  for (uint32_t token : tokens_) {
    words[count] = token & kIdMask;
    count += token != kBlank;
  }
  words.resize(count);
}

int64_t WordReader::CountSentences(absl::string_view text, int64_t at_most) {
  ReadTokens(text);
  int64_t sentences = 1;
  bool mark_seen = false;
  for (uint32_t token : tokens_) {
    if (sentences >= at_most) break;
    uint8_t traits = token == kBlank ? 0 : words_[token & kIdMask].traits;
    if (traits & Word::kEndsSentence) {
      mark_seen = true;
    } else if (mark_seen && !(traits & Word::kIsPunctuation)) {
      ++sentences;
      mark_seen = false;
    }
  }
  return sentences;
}

}  // namespace llmctl::data
