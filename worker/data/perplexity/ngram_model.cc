#include "worker/data/perplexity/ngram_model.h"

#include <bit>
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/digest.h"
#include "common/base/status.h"

namespace llmctl::data {
namespace {

constexpr absl::string_view kUnknownWord = "<unk>";
constexpr absl::string_view kUnknownWordInCapitals = "<UNK>";  // SRILM writes it either way
constexpr float kMissingUnknown = -100;

// A back-off weight of 1 is written with this sign if no longer n-gram has the n-gram as its context: words behind it
// need not look further back.
constexpr float kNoContext = -0.0f;
bool IsContext(float log_backoff) {
  return std::bit_cast<uint32_t>(log_backoff) != std::bit_cast<uint32_t>(kNoContext);
}

// From a file without a number. Never a read one: those are finite.
const float kNoBackoff = std::nanf("");

}  // namespace

uint64_t WordHash(absl::string_view word) { return Fingerprint64(word); }

// Fills a model from a reader. N-grams are taken in blocks: their places in the tables are on their way from memory
// while others are put in.
class NgramLoader {
 public:
  NgramLoader(ArpaReader& reader, NgramModel& model) : reader_(reader), model_(model) {}

  absl::Status Load();

 private:
  static constexpr int kBlock = 32;
  struct Pending {
    uint64_t words[kNgramOrderMax];
    float log_probability;
    float log_backoff;
    uint64_t line;
    int order;
    uint64_t key;
    uint64_t context_key;  // of all words but the last
    uint64_t suffix_key;   // of all but the first
  };

  static uint64_t KeyOf(const uint64_t* words, int count);
  void Reserve();
  void Take(const ArpaNgram& gram);
  absl::Status PutBlock();
  absl::Status Put(const Pending& gram);
  absl::Status MarkContext(const Pending& gram);
  absl::Status EnsureSuffix(const Pending& gram, const uint64_t* words, int count);
  float BackedOff(const uint64_t* words, int count) const;
  absl::Status Finish();
  absl::Status FaultOf(const Pending& gram, absl::string_view what) const;

  GramWithBackoff* FindShorter(int order, uint64_t key) const { return model_.shorter_[order - 1].Find(key); }

  ArpaReader& reader_;
  NgramModel& model_;
  Pending block_[kBlock];
  int filled_ = 0;
};

uint64_t NgramLoader::KeyOf(const uint64_t* words, int count) {
  uint64_t key = GramKeyOf(words[count - 1]);
  for (int i = count - 2; i >= 0; --i) key = ExtendGramKey(key, words[i]);
  return key;
}

absl::Status NgramLoader::FaultOf(const Pending& gram, absl::string_view what) const {
  return reader_.FaultAt(gram.line, absl::StrCat("the ", gram.order, "-gram ", what));
}

void NgramLoader::Reserve() {
  // An n-gram takes at least so much: "-1\ta\n", and two more for each word.
  auto believable = [&](int order) {
    uint64_t bytes = 3 + 2 * order;
    uint64_t hint = reader_.bytes_hint() == 0 ? uint64_t{1} << 20 : reader_.bytes_hint();
    return std::min(reader_.counts()[order - 1], hint / bytes);
  };
  const int order = reader_.order();
  model_.order_ = order;
  for (int n = 1; n < std::max(order, 2); ++n) model_.shorter_.emplace_back(believable(n));
  if (order > 1) model_.longest_ = GramTable<GramWithoutBackoff>(believable(order));
}

void NgramLoader::Take(const ArpaNgram& gram) {
  Pending& to = block_[filled_++];
  to.order = gram.order;
  to.line = reader_.line();
  to.log_probability = gram.log_probability;
  to.log_backoff = !gram.has_backoff ? kNoBackoff : gram.log_backoff == 0 ? kNoContext : gram.log_backoff;
  for (int i = 0; i < gram.order; ++i) {
    absl::string_view word = gram.words[i];
    to.words[i] = WordHash(word == kUnknownWordInCapitals ? kUnknownWord : word);
  }
  to.key = KeyOf(to.words, to.order);
  const bool longest = to.order == model_.order_ && to.order > 1;
  longest ? model_.longest_.Prefetch(to.key) : model_.shorter_[to.order - 1].Prefetch(to.key);
  if (to.order == 1) return;
  to.context_key = KeyOf(to.words, to.order - 1);
  to.suffix_key = KeyOf(to.words + 1, to.order - 1);
  model_.shorter_[to.order - 2].Prefetch(to.context_key);
  model_.shorter_[to.order - 2].Prefetch(to.suffix_key);
}

absl::Status NgramLoader::MarkContext(const Pending& gram) {
  GramWithBackoff* context = FindShorter(gram.order - 1, gram.context_key);
  if (context == nullptr) {
    return FaultOf(gram, absl::StrCat("has no context: its first ", gram.order - 1, " words are no ", gram.order - 1,
                                      "-gram of the model"));
  }
  if (std::isnan(context->log_backoff)) {
    return FaultOf(gram, absl::StrCat("has a context (its first ", gram.order - 1,
                                      " words) without a back-off weight"));
  }
  if (!IsContext(context->log_backoff)) context->log_backoff = 0.0f;
  return absl::OkStatus();
}

// Models from which n-grams were taken away may have "a b c" and not "b c". Look-ups pass over the shorter one to the
// longer, so it is put in with the probability that its absence stands for.
absl::Status NgramLoader::EnsureSuffix(const Pending& gram, const uint64_t* words, int count) {
  uint64_t key = KeyOf(words, count);
  if (FindShorter(count, key) != nullptr) return absl::OkStatus();
  if (count == 1) return FaultOf(gram, "ends with a word that is no 1-gram of the model");
  LLM_RETURN_IF_ERROR(EnsureSuffix(gram, words + 1, count - 1));
  model_.shorter_[count - 1].Insert(key, {BackedOff(words, count), kNoContext});
  return absl::OkStatus();
}

float NgramLoader::BackedOff(const uint64_t* words, int count) const {
  float log_probability = FindShorter(count - 1, KeyOf(words + 1, count - 1))->log_probability;
  const GramWithBackoff* context = FindShorter(count - 1, KeyOf(words, count - 1));
  const bool weighed = context != nullptr && !std::isnan(context->log_backoff);
  return log_probability + (weighed ? context->log_backoff : 0.0f);
}

absl::Status NgramLoader::Put(const Pending& gram) {
  if (gram.order > 1) {
    LLM_RETURN_IF_ERROR(MarkContext(gram));
    if (FindShorter(gram.order - 1, gram.suffix_key) == nullptr) {
      LLM_RETURN_IF_ERROR(EnsureSuffix(gram, gram.words + 1, gram.order - 1));
    }
  }
  const bool longest = gram.order == model_.order_ && gram.order > 1;
  const bool is_new = longest ? model_.longest_.Insert(gram.key, {gram.log_probability})
                              : model_.shorter_[gram.order - 1].Insert(gram.key, {gram.log_probability,
                                                                                  gram.log_backoff});
  return is_new ? absl::OkStatus() : FaultOf(gram, "was given before");
}

absl::Status NgramLoader::PutBlock() {
  for (int i = 0; i < filled_; ++i) LLM_RETURN_IF_ERROR(Put(block_[i]));
  filled_ = 0;
  return absl::OkStatus();
}

absl::Status NgramLoader::Finish() {
  for (absl::string_view mark : {"<s>", "</s>"}) {
    if (!model_.Knows(mark)) return reader_.Fault(absl::StrCat("the model has no 1-gram ", mark));
  }
  for (GramTable<GramWithBackoff>& table : model_.shorter_) {
    table.ForEach([](GramWithBackoff& gram) {
      if (std::isnan(gram.log_backoff)) gram.log_backoff = kNoContext;
    });
  }
  model_.unknown_hash_ = WordHash(kUnknownWord);
  const GramWithBackoff* unknown = FindShorter(1, GramKeyOf(model_.unknown_hash_));
  model_.unknown_ = unknown != nullptr ? *unknown : GramWithBackoff{kMissingUnknown, kNoContext};
  return absl::OkStatus();
}

absl::Status NgramLoader::Load() {
  Reserve();
  ArpaNgram gram;
  while (true) {
    LLM_ASSIGN_OR_RETURN(bool more, reader_.Next(gram));
    if (!more) break;
    // Every n-gram finds the shorter ones in their tables.
    const bool next_order = filled_ > 0 && block_[0].order != gram.order;
    if (filled_ == kBlock || next_order) LLM_RETURN_IF_ERROR(PutBlock());
    Take(gram);
  }
  LLM_RETURN_IF_ERROR(PutBlock());
  return Finish();
}

absl::StatusOr<NgramModel> NgramModel::Load(ArpaReader& reader) {
  NgramModel model;
  LLM_RETURN_IF_ERROR(NgramLoader(reader, model).Load());
  return model;
}

absl::StatusOr<NgramModel> NgramModel::LoadFile(const std::string& path) {
  LLM_ASSIGN_OR_RETURN(ArpaReader reader, ArpaReader::OpenFile(path));
  return Load(reader);
}

uint64_t NgramModel::count(int order) const {
  return order == order_ && order > 1 ? longest_.size() : shorter_[order - 1].size();
}

uint64_t NgramModel::memory_bytes() const {
  uint64_t bytes = longest_.memory_bytes();
  for (const GramTable<GramWithBackoff>& table : shorter_) bytes += table.memory_bytes();
  return bytes;
}

double TextScore::Perplexity() const {
  return length == 0 ? 0 : std::pow(10.0, -log_probability / static_cast<double>(length));
}

NgramScorer::NgramScorer(const NgramModel& model)
    : model_(model), begin_hash_(WordHash("<s>")), end_hash_(WordHash("</s>")), ring_{} {}

void NgramScorer::Clear() {
  hashes_.clear();
  contexts_.clear();
}

void NgramScorer::Push(uint64_t hash, uint8_t context) {
  hashes_.push_back(hash);
  contexts_.push_back(context);
}

void NgramScorer::BeginLine(bool whole) {
  next_context_ = 0;
  if (!whole) return;
  Push(begin_hash_, kNotScored);
  next_context_ = model_.order_ > 1 ? 1 : 0;
}

void NgramScorer::AddWordHash(uint64_t hash) {
  Push(hash, next_context_);
  if (next_context_ + 1 < model_.order_) ++next_context_;
}

void NgramScorer::EndLine(bool whole) {
  if (whole) Push(end_hash_, next_context_);
}

void NgramScorer::LookUpWord(size_t at) {
  Slot& word = slot(at);
  word.hash = hashes_[at];
  const GramWithBackoff* gram = model_.shorter_[0].Find(GramKeyOf(word.hash));
  word.known = gram != nullptr && word.hash != model_.unknown_hash_;
  if (!word.known) word.hash = model_.unknown_hash_;
  word.gram = gram != nullptr ? *gram : model_.unknown_;
}

// The words before it have been looked up.
void NgramScorer::FetchGrams(size_t at) {
  if (contexts_[at] == kNotScored) return;
  Slot& word = slot(at);
  word.keys[0] = GramKeyOf(word.hash);
  for (int before = 1; before <= contexts_[at]; ++before) {
    word.keys[before] = ExtendGramKey(word.keys[before - 1], slot(at - before).hash);
    before + 1 == model_.order_ ? model_.longest_.Prefetch(word.keys[before])
                                : model_.shorter_[before].Prefetch(word.keys[before]);
  }
}

WordScore NgramScorer::ScoreWord(size_t at) {
  const Slot& word = slot(at);
  const int context = std::min<int>(context_.words, contexts_[at]);
  WordScore score{word.gram.log_probability, 1, word.known};
  Context next;
  next.backoffs[0] = word.gram.log_backoff;
  next.words = model_.order_ > 1 && IsContext(word.gram.log_backoff) ? 1 : 0;
  for (int before = 1; before <= context; ++before) {
    if (before + 1 == model_.order_) {
      const GramWithoutBackoff* gram = model_.longest_.Find(word.keys[before]);
      if (gram == nullptr) break;
      score.log_probability = gram->log_probability;
    } else {
      const GramWithBackoff* gram = model_.shorter_[before].Find(word.keys[before]);
      if (gram == nullptr) break;
      score.log_probability = gram->log_probability;
      next.backoffs[before] = gram->log_backoff;
      if (IsContext(gram->log_backoff)) next.words = before + 1;
    }
    score.matched = before + 1;
  }
  for (int words = score.matched; words <= context; ++words) score.log_probability += context_.backoffs[words - 1];
  context_ = next;
  return score;
}

template <typename Each>
TextScore NgramScorer::ScoreAll(Each each) {
  const size_t size = hashes_.size();
  TextScore total;
  context_.words = 0;
  for (size_t step = 0; step < size + kAheadWords; ++step) {
    if (step < size) model_.shorter_[0].Prefetch(GramKeyOf(hashes_[step]));
    if (step >= kAheadGrams && step - kAheadGrams < size) {
      LookUpWord(step - kAheadGrams);
      FetchGrams(step - kAheadGrams);
    }
    if (step < kAheadWords) continue;
    const size_t at = step - kAheadWords;
    if (contexts_[at] == kNotScored) {
      context_.words = 1;
      context_.backoffs[0] = slot(at).gram.log_backoff;
      continue;
    }
    WordScore score = ScoreWord(at);
    total.log_probability += score.log_probability;
    total.length += 1;
    total.unknown += score.known ? 0 : 1;
    each(score);
  }
  return total;
}

TextScore NgramScorer::Score() {
  return ScoreAll([](const WordScore&) {});
}

TextScore NgramScorer::Score(absl::FunctionRef<void(const WordScore&)> each) { return ScoreAll(each); }

}  // namespace llmctl::data
