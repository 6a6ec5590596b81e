#include "worker/data/tokenizer/bpe_trainer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "worker/data/tokenizer/byte_alphabet.h"
#include "worker/data/tokenizer/pair_ledger.h"

namespace llmctl::data {
namespace {

constexpr int32_t kNone = -1;

// Specials, then the bytes in the order of their characters.
std::vector<std::string> FirstTokens(const TrainOptions& options) {
  std::vector<std::string> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  std::sort(bytes.begin(), bytes.end(), [](const std::string& a, const std::string& b) {
    return ByteToCodePoint(static_cast<uint8_t>(a[0])) < ByteToCodePoint(static_cast<uint8_t>(b[0]));
  });
  std::vector<std::string> tokens = options.specials;
  tokens.insert(tokens.end(), bytes.begin(), bytes.end());
  return tokens;
}

absl::Status Validate(const TrainOptions& options) {
  absl::flat_hash_set<std::string> seen;
  for (const std::string& special : options.specials) {
    if (special.size() < 2) {
      return absl::InvalidArgumentError(absl::StrCat(
          "special token \"", special, "\": expected two bytes at least, a single one is a token of text"));
    }
    if (!seen.insert(special).second) {
      return absl::InvalidArgumentError(absl::StrCat("special token \"", special, "\" is given twice"));
    }
  }
  size_t least = 256 + options.specials.size();
  if (options.vocabulary_size >= 0 && static_cast<size_t>(options.vocabulary_size) >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a vocabulary of ", options.vocabulary_size,
                                                 " tokens: expected at least ", least,
                                                 ", the 256 bytes and the special tokens"));
}

// The distinct words as the tokens that they consist of so far.
//
// A cell per byte, and one of kNone before, between and after the words. The first and the last cell of a token hold
// its id, so that both neighbours of a token are found; cells within it hold an id of no token that begins there.
class Words {
 public:
  Words(const WordCounts& counts, const std::vector<int32_t>& id_of_byte) : cells_(1, kNone), word_of_(1, 0) {
    counts.ForEach([&](absl::string_view word, int64_t count) {
      uint32_t index = static_cast<uint32_t>(counts_.size());
      for (char byte : word) cells_.push_back(id_of_byte[static_cast<uint8_t>(byte)]);
      cells_.push_back(kNone);
      word_of_.resize(cells_.size(), index);
      counts_.push_back(count);
    });
  }

  uint32_t size() const { return static_cast<uint32_t>(cells_.size()); }
  int32_t At(uint32_t place) const { return cells_[place]; }
  int64_t CountAt(uint32_t place) const { return counts_[word_of_[place]]; }

  // The token at `place`, of `left_bytes`, and the one after it, of `right_bytes`, become `id`.
  void Join(uint32_t place, uint32_t left_bytes, uint32_t right_bytes, int32_t id) {
    cells_[place + left_bytes - 1] = kNone;
    cells_[place + left_bytes] = kNone;
    cells_[place] = id;
    cells_[place + left_bytes + right_bytes - 1] = id;
  }

 private:
  std::vector<int32_t> cells_;
  std::vector<uint32_t> word_of_;  // by cell
  std::vector<int64_t> counts_;    // by word
};

// Sums by token, in the order in which tokens came.
class Tally {
 public:
  struct Sum {
    int32_t token;
    int64_t sum;
  };

  explicit Tally(size_t vocabulary_size) : slot_of_(vocabulary_size, kNone) {}

  // The slot of `token`'s sum.
  int32_t Add(int32_t token, int64_t count) {
    int32_t& slot = slot_of_[token];
    if (slot == kNone) {
      slot = static_cast<int32_t>(sums_.size());
      sums_.push_back({token, 0});
    }
    sums_[slot].sum += count;
    return slot;
  }

  const std::vector<Sum>& sums() const { return sums_; }

  void Clear() {
    for (const Sum& sum : sums_) slot_of_[sum.token] = kNone;
    sums_.clear();
  }

 private:
  std::vector<int32_t> slot_of_;  // by token
  std::vector<Sum> sums_;
};

// The pairs that came about with one token on one side of them, by the token on the other.
class NewPairs {
 public:
  explicit NewPairs(size_t vocabulary_size) : tally_(vocabulary_size) {}

  void Add(int32_t other, int64_t count, uint32_t place) { places_.push_back({tally_.Add(other, count), place}); }

  const std::vector<Tally::Sum>& sums() const { return tally_.sums(); }

  // Each pair's places, in the order they were added; then forgets them. `pair_with(other)` is the pair.
  template <typename PairWith>
  void EnterInto(PairLedger& ledger, PairWith pair_with) {
    room_.assign(tally_.sums().size(), 0);
    for (const auto& [slot, place] : places_) ++room_[slot];
    entered_.resize(room_.size());
    for (size_t slot = 0; slot < room_.size(); ++slot) {
      entered_[slot] = ledger.Enter(pair_with(tally_.sums()[slot].token), room_[slot]);
    }
    for (const auto& [slot, place] : places_) {
      if (entered_[slot]) ledger.SetPlace((*entered_[slot])++, place);
    }
    tally_.Clear();
    places_.clear();
  }

 private:
  Tally tally_;
  std::vector<std::pair<int32_t, uint32_t>> places_;  // slot, place
  std::vector<size_t> room_;                          // by slot
  std::vector<absl::optional<size_t>> entered_;       // by slot: where the next place goes
};

class Trainer {
 public:
  Trainer(const WordCounts& counts, const TrainOptions& options)
      : options_(options),
        vocabulary_size_(static_cast<size_t>(options.vocabulary_size)),
        tokens_(FirstTokens(options)),
        words_(counts, IdsOfBytes()),
        ledger_(size_t{3} * words_.size()),
        lost_left_(vocabulary_size_),
        lost_right_(vocabulary_size_),
        new_left_(vocabulary_size_),
        new_right_(vocabulary_size_) {
    for (size_t id = 0; id < tokens_.size(); ++id) id_of_[tokens_[id]] = static_cast<int32_t>(id);
  }

  absl::Status Run() {
    EnterBytePairs();
    while (tokens_.size() < vocabulary_size_) {
      absl::optional<PairLedger::Top> top = ledger_.TakeTop();
      if (!top || top->count < std::max<int64_t>(1, options_.frequency_min)) break;
      LLM_RETURN_IF_ERROR(Join(*top));
    }
    return absl::OkStatus();
  }

  TokenizerDefinition Definition(const WordCounts& counts) &&;

 private:
  std::vector<int32_t> IdsOfBytes() const {
    std::vector<int32_t> ids(256);
    for (size_t id = options_.specials.size(); id < tokens_.size(); ++id) {
      ids[static_cast<uint8_t>(tokens_[id][0])] = static_cast<int32_t>(id);
    }
    return ids;
  }

  uint32_t BytesOf(int32_t id) const { return static_cast<uint32_t>(tokens_[id].size()); }

  void EnterBytePairs();
  absl::StatusOr<int32_t> IdOfJoined(TokenPair pair);
  absl::Status Join(const PairLedger::Top& top);
  void JoinAt(uint32_t place, TokenPair pair, int32_t joined);

  const TrainOptions& options_;
  const size_t vocabulary_size_;
  std::vector<std::string> tokens_;
  absl::flat_hash_map<std::string, int32_t> id_of_;
  std::vector<Merge> merges_;
  Words words_;
  PairLedger ledger_;
  // What one merge of (left, right) changes: counts of (x, left) and (right, y), that are pairs no more, and the pairs
  // (x, joined) and (joined, y). Kept between merges for their memory.
  Tally lost_left_;
  Tally lost_right_;
  NewPairs new_left_;
  NewPairs new_right_;
};

void Trainer::EnterBytePairs() {
  struct BytePair {
    size_t places = 0;
    absl::optional<size_t> next;
  };
  const int32_t first = static_cast<int32_t>(options_.specials.size());
  std::vector<BytePair> pairs(256 * 256);
  auto for_each = [&](auto visit) {
    for (uint32_t place = 1; place + 1 < words_.size(); ++place) {
      TokenPair pair = {words_.At(place), words_.At(place + 1)};
      if (pair.left == kNone || pair.right == kNone) continue;
      visit(place, pair, pairs[(pair.left - first) << 8 | (pair.right - first)]);
    }
  };
  for_each([&](uint32_t place, TokenPair pair, BytePair& found) {
    ++found.places;
    ledger_.ChangeCount(pair, words_.CountAt(place));
  });
  for (int32_t i = 0; i < 256 * 256; ++i) {
    if (pairs[i].places > 0) pairs[i].next = ledger_.Enter({first + (i >> 8), first + (i & 0xFF)}, pairs[i].places);
  }
  for_each([&](uint32_t place, TokenPair, BytePair& found) { ledger_.SetPlace((*found.next)++, place); });
}

// Two merges may give the same token, as (a, bc) and (ab, c) do; it has one id.
absl::StatusOr<int32_t> Trainer::IdOfJoined(TokenPair pair) {
  std::string bytes = tokens_[pair.left] + tokens_[pair.right];
  auto [found, is_new] = id_of_.emplace(bytes, static_cast<int32_t>(tokens_.size()));
  if (is_new) {
    tokens_.push_back(std::move(bytes));
  } else if (static_cast<size_t>(found->second) < options_.specials.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("special token \"", bytes,
                     "\": the words of the text give the same token; choose a name that no word has in it"));
  }
  return found->second;
}

void Trainer::JoinAt(uint32_t place, TokenPair pair, int32_t joined) {
  uint32_t left_bytes = BytesOf(pair.left), right_bytes = BytesOf(pair.right);
  int64_t count = words_.CountAt(place);
  int32_t before = words_.At(place - 1), after = words_.At(place + left_bytes + right_bytes);
  words_.Join(place, left_bytes, right_bytes, joined);
  if (before != kNone) {
    lost_left_.Add(before, count);
    new_left_.Add(before, count, place - BytesOf(before));
  }
  if (after == kNone) return;
  lost_right_.Add(after, count);
  // (joined, joined) is one pair, whichever side it came about on.
  (after == joined ? new_left_ : new_right_).Add(after, count, place);
}

absl::Status Trainer::Join(const PairLedger::Top& top) {
  const TokenPair pair = top.pair;
  absl::StatusOr<int32_t> id = IdOfJoined(pair);
  if (!id.ok()) return id.status();
  const int32_t joined = *id;
  merges_.push_back({pair.left, pair.right, joined});
  for (uint32_t place : top.places) {
    bool still = words_.At(place) == pair.left && words_.At(place + BytesOf(pair.left)) == pair.right;
    if (still) JoinAt(place, pair, joined);
  }
  for (const Tally::Sum& sum : lost_left_.sums()) ledger_.ChangeCount({sum.token, pair.left}, -sum.sum);
  for (const Tally::Sum& sum : lost_right_.sums()) ledger_.ChangeCount({pair.right, sum.token}, -sum.sum);
  lost_left_.Clear();
  lost_right_.Clear();
  for (const Tally::Sum& sum : new_left_.sums()) ledger_.ChangeCount({sum.token, joined}, sum.sum);
  for (const Tally::Sum& sum : new_right_.sums()) ledger_.ChangeCount({joined, sum.token}, sum.sum);
  new_left_.EnterInto(ledger_, [&](int32_t other) { return TokenPair{other, joined}; });
  new_right_.EnterInto(ledger_, [&](int32_t other) { return TokenPair{joined, other}; });
  return absl::OkStatus();
}

TokenizerDefinition Trainer::Definition(const WordCounts& counts) && {
  TokenizerDefinition out;
  out.pattern = counts.pattern();
  out.nfc = counts.nfc();
  out.model_tokens = static_cast<int32_t>(tokens_.size());
  out.tokens = std::move(tokens_);
  // A pair that was joined twice has the rank of its last time.
  absl::flat_hash_set<std::pair<int32_t, int32_t>> seen;
  for (auto merge = merges_.rbegin(); merge != merges_.rend(); ++merge) {
    if (seen.insert({merge->left, merge->right}).second) out.merges.push_back(*merge);
  }
  std::reverse(out.merges.begin(), out.merges.end());
  for (size_t id = 0; id < options_.specials.size(); ++id) {
    out.added.push_back({options_.specials[id], static_cast<int32_t>(id), /*special=*/true, /*normalized=*/false});
  }
  return out;
}

// Places have 32 bits.
absl::Status CheckSize(const WordCounts& counts) {
  uint64_t cells = 1;
  counts.ForEach([&](absl::string_view word, int64_t) { cells += word.size() + 1; });
  if (cells < std::numeric_limits<uint32_t>::max()) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("train on ", counts.distinct(), " distinct words of ", cells, " bytes in all: at most ",
                   std::numeric_limits<uint32_t>::max(), " can be; take a sample of the text"));
}

}  // namespace

absl::StatusOr<TokenizerDefinition> TrainBpe(const WordCounts& words, const TrainOptions& options) {
  LLM_RETURN_IF_ERROR(Validate(options));
  LLM_RETURN_IF_ERROR(CheckSize(words));
  Trainer trainer(words, options);
  LLM_RETURN_IF_ERROR(trainer.Run());
  return std::move(trainer).Definition(words);
}

}  // namespace llmctl::data
