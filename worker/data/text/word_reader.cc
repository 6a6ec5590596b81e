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

constexpr size_t kInlineBytes = 16;
constexpr size_t kPendingMax = 32;

}  // namespace

WordReader::Key WordReader::KeyOf(absl::string_view text) {
  const char* at = text.data();
  size_t size = text.size();
  Key key;
  key.size = size;
  if (size > kInlineBytes) {
    key.first = XXH3_64bits(at, size);
  } else if (size >= 8) {
    key.first = Load64(at);
    key.last = Load64(at + size - 8);
  } else if (size >= 4) {
    key.first = Load32(at);
    key.last = Load32(at + size - 4);
  } else if (size > 0) {
    key.first = static_cast<uint8_t>(at[0]) << 16 | static_cast<uint8_t>(at[size / 2]) << 8;
    key.last = static_cast<uint8_t>(at[size - 1]);
  }
  Hash(key);
  return key;
}

void WordReader::Hash(Key& key) {
  // Of long texts `last` is an address.
  uint64_t last = key.size > kInlineBytes ? 0 : key.last;
  key.hash = Mix(key.first ^ 0x9e3779b97f4a7c15 ^ key.size, last ^ 0xd1b54a32d192ed03);
}

absl::string_view WordReader::LongTextOf(const Slot& slot) {
  return absl::string_view(reinterpret_cast<const char*>(slot.last), slot.size);
}

WordReader::WordReader(const WordSplitter& splitter, Options options)
    : table_(CharacterTable::Get()), splitter_(splitter), joins_(splitter), options_(std::move(options)) {
  for (const std::string& word : options_.marked_words) marks_.try_emplace(word, marks_.size() + 1);
  Reset();
}

void WordReader::Reset() {
  // What the table has grown to it would grow to again.
  slots_.assign(std::max(kSlotsAtFirst, slots_.size()), Slot());
  slot_count_ = 0;
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
    if (slot.size == 0) continue;
    Key key = {slot.first, slot.last, slot.size};
    Hash(key);
    size_t at = key.hash & (slots_.size() - 1);
    while (slots_[at].size != 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = slot;
  }
}

WordReader::Slot& WordReader::SlotOf(absl::string_view text, const Key& key) {
  size_t at = key.hash & (slots_.size() - 1);
  for (; slots_[at].size != 0; at = (at + 1) & (slots_.size() - 1)) {
    const Slot& known = slots_[at];
    if (known.size != key.size || known.first != key.first) continue;
    if (key.size <= kInlineBytes ? known.last == key.last : LongTextOf(known) == text) return slots_[at];
  }
  uint64_t last = key.size <= kInlineBytes ? key.last : reinterpret_cast<uint64_t>(Keep(text).data());
  slots_[at] = {key.first, last, key.size};
  bytes_ += 2 * sizeof(Slot);
  if (2 * ++slot_count_ <= slots_.size()) return slots_[at];
  GrowSlots();
  return SlotOf(text, key);
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
  Slot& slot = SlotOf(text, KeyOf(text));
  if (slot.id != 0) return slot.id;
  slot.id = words_.size();
  absl::string_view kept = text.size() <= kInlineBytes ? Keep(text) : LongTextOf(slot);
  words_.push_back(Describe(kept));
  bytes_ += sizeof(Word);
  return slot.id;
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

void WordReader::ReadChunk(absl::string_view chunk, const Key& key) {
  if (chunk.size() > kRememberedBytesMax) return SplitChunk(chunk);
  const Slot& known = SlotOf(chunk, key);
  if (known.count == 1) {
    tokens_.push_back(known.tokens);
    return;
  }
  if (known.count > 0) {
    // Not insert(): there are two or three.
    for (uint32_t i = 0; i < known.count; ++i) tokens_.push_back(chunk_tokens_[known.tokens + i]);
    return;
  }
  size_t first = tokens_.size();
  SplitChunk(chunk);
  Slot& slot = SlotOf(chunk, key);  // words have been added: it may have moved
  slot.count = tokens_.size() - first;
  slot.tokens = slot.count == 1 ? tokens_[first] : chunk_tokens_.size();
  if (slot.count == 1) return;
  chunk_tokens_.insert(chunk_tokens_.end(), tokens_.begin() + first, tokens_.end());
  bytes_ += slot.count * sizeof(uint32_t);
}

// Slots lie all over memory: they are asked for some chunks before they are looked at, so that nobody waits for them.
void WordReader::Await(absl::string_view chunk, bool after_blank) {
  Pending pending{chunk, {}, after_blank};
  if (chunk.size() <= kRememberedBytesMax) {
    pending.key = KeyOf(chunk);
    __builtin_prefetch(&slots_[pending.key.hash & (slots_.size() - 1)]);
  }
  pending_.push_back(pending);
  if (pending_.size() == kPendingMax) ReadPending();
}

void WordReader::ReadPending() {
  for (const Pending& pending : pending_) {
    if (pending.after_blank) tokens_.push_back(kBlank);
    ReadChunk(pending.chunk, pending.key);
  }
  pending_.clear();
}

void WordReader::ReadTokens(absl::string_view text) {
  tokens_.clear();
  pending_.clear();
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
    bool blank = at > start;
    if (at == end) {
      ReadPending();
      if (blank) tokens_.push_back(kBlank);
      break;
    }
    size_t size = table_.FindSpace(absl::string_view(at, end - at));
    Await(absl::string_view(at, size), blank);
    at += size;
  }
  ReadPending();
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
