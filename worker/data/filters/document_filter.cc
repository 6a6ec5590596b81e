#include "worker/data/filters/document_filter.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"

#include "worker/data/text/characters.h"
#include "worker/data/text/line_iterator.h"
#include "worker/data/text/utf8.h"

namespace llmctl::data {
namespace {

constexpr absl::string_view kAsciiEllipsis = "...";
constexpr absl::string_view kEllipsis = "\u2026";
constexpr absl::string_view kBullet = "\u2022";
constexpr int kGramWordsMax = 10;

int64_t CountText(absl::string_view text, absl::string_view wanted) {
  int64_t count = 0;
  for (size_t at = text.find(wanted); at != absl::string_view::npos; at = text.find(wanted, at + wanted.size())) {
    ++count;
  }
  return count;
}

// Calls `visit` with each piece between separators of `feeds_min` or more line feeds.
template <typename Visit>
void ForEachPiece(absl::string_view text, size_t feeds_min, Visit visit) {
  size_t start = 0;
  size_t at = text.find('\n');
  while (at != absl::string_view::npos) {
    size_t end = std::min(text.find_first_not_of('\n', at), text.size());
    if (end - at >= feeds_min) {
      visit(text.substr(start, at - start));
      start = end;
    }
    at = text.find('\n', end);
  }
  visit(text.substr(start));
}

struct Repeated {
  int64_t pieces = 0;
  int64_t repeated = 0;
  int64_t repeated_characters = 0;
};

Repeated CountRepeated(absl::string_view text, size_t feeds_min, PieceSet& known) {
  Repeated out;
  known.Begin();
  ForEachPiece(text, feeds_min, [&](absl::string_view piece) {
    ++out.pieces;
    if (known.Add(piece)) return;
    ++out.repeated;
    out.repeated_characters += CountCodePoints(piece);
  });
  return out;
}

}  // namespace

FilterRules::FilterRules(FilterSettings settings) : settings_(std::move(settings)) {
  if (!settings_.gopher_quality.has_value()) return;
  absl::flat_hash_map<std::string, size_t> marks;
  for (const auto& [language, words] : settings_.gopher_quality->stop_words) {
    for (const std::string& word : words) {
      if (marks.try_emplace(word, marks.size() + 1).second) stop_words_.push_back(word);
    }
  }
  for (const auto& [language, words] : settings_.gopher_quality->stop_words) {
    std::vector<bool>& is_stop_word = of_language_[language];
    is_stop_word.resize(stop_words_.size() + 1);
    for (const std::string& word : words) is_stop_word[marks[word]] = true;
  }
}

const std::vector<bool>& FilterRules::StopWordsOf(absl::string_view language) const {
  auto at = of_language_.find(language);
  return at != of_language_.end() ? at->second : of_language_.find(absl::string_view())->second;
}

DocumentFilter::DocumentFilter(const FilterRules& rules)
    : rules_(rules), reader_(rules.splitter(), {.marked_words = rules.stop_words()}) {}

void DocumentFilter::Begin() {
  reader_.Begin();
  words_.clear();
  words_of_ = absl::string_view();
}

const std::vector<uint32_t>& DocumentFilter::WordsOf(absl::string_view text) {
  if (words_of_.data() == text.data() && words_of_.size() == text.size()) return words_;
  reader_.ReadWords(text, words_);
  words_of_ = text;
  return words_;
}

Verdict DocumentFilter::Run(std::string& text, absl::string_view language) {
  Begin();
  Verdict verdict = RunBeforeRewriting(text, language);
  if (verdict.keep() && rules_.settings().c4.has_value()) verdict = RunRewriting(text);
  if (verdict.keep()) verdict = RunAfterRewriting(rules_.settings().c4.has_value() ? rewritten_ : text);
  if (verdict.keep() && rules_.settings().c4.has_value()) text = rewritten_;
  return verdict;
}

Verdict DocumentFilter::RunBeforeRewriting(absl::string_view text, absl::string_view language) {
  if (rules_.settings().mode == FilterMode::kDatatrove) return RunInDatatroveOrder(text, language);
  return RunCheapestFirst(text, language);
}

Verdict DocumentFilter::RunInDatatroveOrder(absl::string_view text, absl::string_view language) {
  const FilterSettings& settings = rules_.settings();
  Verdict verdict;
  if (settings.gopher_repetition.has_value()) {
    GopherRepetitionStats repetition = MeasurePieces(text);
    verdict = JudgePieces(repetition, *settings.gopher_repetition);
    if (verdict.keep()) verdict = RunGrams(text, repetition);
  }
  if (!verdict.keep() || !settings.gopher_quality.has_value()) return verdict;
  return Judge(MeasureQuality(text, language), *settings.gopher_quality);
}

// Most documents that go have too few words, or too few of them with letters. N-grams cost most.
Verdict DocumentFilter::RunCheapestFirst(absl::string_view text, absl::string_view language) {
  const FilterSettings& settings = rules_.settings();
  GopherRepetitionStats repetition;
  Verdict verdict;
  if (settings.gopher_repetition.has_value() && text.empty()) {
    return JudgePieces(repetition, *settings.gopher_repetition);
  }
  GopherQualityStats quality;
  if (settings.gopher_quality.has_value()) {
    quality = MeasureWords(text, language);
    // The rules for lines and marks drop nothing where none is counted.
    verdict = Judge(quality, *settings.gopher_quality);
  }
  if (verdict.keep() && settings.gopher_repetition.has_value()) {
    repetition = MeasurePieces(text);
    verdict = JudgePieces(repetition, *settings.gopher_repetition);
  }
  if (verdict.keep() && settings.gopher_quality.has_value()) {
    MeasureMarks(text, quality);
    verdict = Judge(quality, *settings.gopher_quality);
  }
  if (verdict.keep() && settings.gopher_repetition.has_value()) verdict = RunGrams(text, repetition);
  return verdict;
}

bool DocumentFilter::IsGramRuleOn(int n) const {
  const GopherRepetitionSettings& settings = *rules_.settings().gopher_repetition;
  if (n < GopherRepetitionStats::kRepeatedGramMin) {
    return settings.top_gram_fraction_max[n - GopherRepetitionStats::kTopGramMin].has_value();
  }
  return settings.repeated_gram_fraction_max[n - GopherRepetitionStats::kRepeatedGramMin].has_value();
}

Verdict DocumentFilter::RunGrams(absl::string_view text, GopherRepetitionStats& stats) {
  const FilterSettings& settings = rules_.settings();
  grams_.Begin(WordsOf(text), reader_);
  for (int n = GopherRepetitionStats::kTopGramMin; n <= kGramWordsMax; ++n) {
    grams_.Advance();
    if (!IsGramRuleOn(n)) continue;
    MeasureGrams(n, stats);
    Verdict verdict = JudgeGrams(stats, *settings.gopher_repetition, n);
    if (!verdict.keep()) return verdict;
  }
  return {};
}

Verdict DocumentFilter::RunRewriting(std::string& text) {
  const C4Settings& settings = *rules_.settings().c4;
  C4Stats stats = RewriteLines(text, settings, Depth::kVerdict, reader_, rewritten_);
  // The words of a text that stays as it is need not be read again.
  if (rewritten_ == text && words_of_.data() == text.data()) words_of_ = rewritten_;
  return Judge(stats, settings);
}

Verdict DocumentFilter::RunAfterRewriting(absl::string_view text) {
  const FilterSettings& settings = rules_.settings();
  if (settings.fineweb.has_value()) {
    FineWebStats stats = MeasureFineWebLines(text);
    Verdict verdict = JudgeLines(stats, *settings.fineweb);
    if (!verdict.keep()) return verdict;
    // A text of one line cannot have too many.
    if (stats.line_ends > 0 && settings.fineweb->line_ends_per_word_max.has_value()) {
      stats.words = WordsOf(text).size();
      verdict = Judge(stats, *settings.fineweb);
      if (!verdict.keep()) return verdict;
    }
  }
  if (!settings.paragraphs.has_value()) return {};
  return Judge(MeasureParagraphs(text), *settings.paragraphs);
}

FilterStats DocumentFilter::Measure(absl::string_view text, absl::string_view language, std::string& rewritten) {
  const FilterSettings& settings = rules_.settings();
  Begin();
  FilterStats stats;
  if (settings.gopher_repetition.has_value()) {
    GopherRepetitionStats& repetition = stats.gopher_repetition.emplace(MeasurePieces(text));
    grams_.Begin(WordsOf(text), reader_);
    for (int n = GopherRepetitionStats::kTopGramMin; n <= kGramWordsMax; ++n) {
      grams_.Advance();
      MeasureGrams(n, repetition);
    }
  }
  if (settings.gopher_quality.has_value()) stats.gopher_quality = MeasureQuality(text, language);
  if (settings.c4.has_value()) {
    stats.c4 = RewriteLines(text, *settings.c4, Depth::kNumbers, reader_, rewritten);
  } else {
    rewritten = std::string(text);
  }
  if (settings.fineweb.has_value()) {
    stats.fineweb = MeasureFineWebLines(rewritten);
    stats.fineweb->words = WordsOf(rewritten).size();
  }
  if (settings.paragraphs.has_value()) stats.paragraphs = MeasureParagraphs(rewritten);
  return stats;
}

GopherRepetitionStats DocumentFilter::MeasurePieces(absl::string_view text) {
  GopherRepetitionStats stats;
  stats.characters = CountCodePoints(text);
  Repeated paragraphs = CountRepeated(CharacterTable::Get().Strip(text), 2, pieces_);
  stats.paragraphs = paragraphs.pieces;
  stats.repeated_paragraphs = paragraphs.repeated;
  stats.repeated_paragraph_characters = paragraphs.repeated_characters;
  Repeated lines = CountRepeated(text, 1, pieces_);
  stats.lines = lines.pieces;
  stats.repeated_lines = lines.repeated;
  stats.repeated_line_characters = lines.repeated_characters;
  return stats;
}

// Of the n-grams that grams_ is at.
void DocumentFilter::MeasureGrams(int n, GopherRepetitionStats& stats) {
  if (n < GopherRepetitionStats::kRepeatedGramMin) {
    stats.top_gram_characters[n - GopherRepetitionStats::kTopGramMin] = grams_.TopCharacters();
    return;
  }
  bool as_text = rules_.settings().mode == FilterMode::kDatatrove;
  stats.repeated_gram_characters[n - GopherRepetitionStats::kRepeatedGramMin] =
      as_text ? grams_.RepeatedCharactersAsText() : grams_.RepeatedCharacters();
}

GopherQualityStats DocumentFilter::MeasureQuality(absl::string_view text, absl::string_view language) {
  GopherQualityStats stats = MeasureWords(text, language);
  MeasureMarks(text, stats);
  return stats;
}

GopherQualityStats DocumentFilter::MeasureWords(absl::string_view text, absl::string_view language) {
  GopherQualityStats stats;
  const std::vector<bool>& is_stop_word = rules_.StopWordsOf(language);
  stop_words_seen_.assign(is_stop_word.size(), false);
  for (uint32_t id : WordsOf(text)) {
    const Word& word = reader_.word(id);
    ++stats.words;
    stats.letter_words += (word.traits & Word::kHasLetter) != 0;
    if (word.traits & Word::kHasNonSymbol) {
      ++stats.plain_words;
      stats.plain_word_characters += word.characters;
    }
    if (word.mark != 0 && is_stop_word[word.mark] && !stop_words_seen_[word.mark]) {
      stop_words_seen_[word.mark] = true;
      ++stats.stop_words;
    }
  }
  return stats;
}

// What MeasureWords() leaves: hashes, ellipses and lines.
void DocumentFilter::MeasureMarks(absl::string_view text, GopherQualityStats& stats) const {
  stats.hashes = CountText(text, "#");
  stats.ellipses = CountText(text, kAsciiEllipsis) + CountText(text, kEllipsis);
  const CharacterTable& table = CharacterTable::Get();
  LineIterator lines(text);
  absl::string_view line;
  while (lines.Next(line)) {
    ++stats.lines;
    absl::string_view start = table.StripStart(line);
    stats.bullet_lines += absl::StartsWith(start, kBullet) || absl::StartsWith(start, "-");
    absl::string_view end = table.StripEnd(line);
    stats.ellipsis_lines += absl::EndsWith(end, kAsciiEllipsis) || absl::EndsWith(end, kEllipsis);
  }
}

FineWebStats DocumentFilter::MeasureFineWebLines(absl::string_view text) {
  const CharacterTable& table = CharacterTable::Get();
  FineWebStats stats;
  int64_t short_characters = rules_.settings().fineweb->short_line_characters;
  pieces_.Begin();
  size_t start = 0;
  while (start <= text.size()) {
    size_t end = std::min(text.find('\n', start), text.size());
    absl::string_view line = text.substr(start, end - start);
    stats.line_ends += end < text.size();
    start = end + 1;
    if (table.StripStart(line).empty()) continue;
    ++stats.lines;
    const char* last = line.data() + line.size();
    stats.terminal_lines += table.Is(PreviousCodePoint(last), kTerminal);
    // No character has more than four bytes.
    bool is_long = static_cast<int64_t>(line.size()) > 4 * short_characters;
    stats.short_lines += !is_long && CountCodePoints(line) <= short_characters;
    if (!pieces_.Add(line)) stats.repeated_line_characters += CountCodePoints(line);
  }
  stats.characters = CountCodePoints(text) - stats.line_ends;
  return stats;
}

ParagraphStats DocumentFilter::MeasureParagraphs(absl::string_view text) const {
  std::vector<int64_t> lengths;
  size_t start = 0;
  while (start <= text.size()) {
    size_t end = std::min(text.find('\n', start), text.size());
    lengths.push_back(CountCodePoints(text.substr(start, end - start)));
    start = end + 1;
  }
  ParagraphStats stats;
  stats.paragraphs = lengths.size();
  size_t wanted = rules_.settings().paragraphs->paragraphs_min;
  if (lengths.size() < wanted) return stats;
  std::nth_element(lengths.begin(), lengths.begin() + (wanted - 1), lengths.end(), std::greater<>());
  stats.least_long = lengths[wanted - 1];
  return stats;
}

}  // namespace llmctl::data
