#include "tests/unit/filters/naive_measure.h"

#include <algorithm>
#include <map>
#include <set>

#include "worker/data/text/characters.h"
#include "worker/data/text/line_iterator.h"
#include "worker/data/text/utf8.h"

namespace llmctl::data {
namespace {

bool AnyOf(const std::string& word, uint32_t classes, bool wanted) {
  for (const char* at = word.data(); at < word.data() + word.size();) {
    if (CharacterTable::Get().Is(NextCodePoint(at), classes) == wanted) return true;
  }
  return false;
}

// Splits at runs of `feeds_min` or more line feeds.
std::vector<std::string> SplitAtFeeds(const std::string& text, size_t feeds_min) {
  std::vector<std::string> pieces(1);
  for (size_t at = 0; at < text.size();) {
    size_t feeds = 0;
    while (at + feeds < text.size() && text[at + feeds] == '\n') ++feeds;
    if (feeds >= feeds_min) {
      pieces.emplace_back();
    } else {
      pieces.back() += text.substr(at, std::max<size_t>(feeds, 1));
    }
    at += std::max<size_t>(feeds, 1);
  }
  return pieces;
}

std::vector<std::string> SplitAtEachFeed(const std::string& text) {
  std::vector<std::string> lines(1);
  for (char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  return lines;
}

struct Duplicates {
  int64_t count = 0;
  int64_t characters = 0;
};

Duplicates FindDuplicates(const std::vector<std::string>& pieces) {
  Duplicates out;
  std::set<std::string> seen;
  for (const std::string& piece : pieces) {
    if (seen.insert(piece).second) continue;
    ++out.count;
    out.characters += CountCodePoints(piece);
  }
  return out;
}

std::string Joined(const std::vector<std::string>& words, size_t first, size_t count, const std::string& separator) {
  std::string out;
  for (size_t i = first; i < first + count; ++i) out += (i > first ? separator : "") + words[i];
  return out;
}

int64_t TopGram(const std::vector<std::string>& words, size_t n) {
  std::map<std::string, int64_t> counts;
  for (size_t i = 0; i + n <= words.size(); ++i) ++counts[Joined(words, i, n, " ")];
  int64_t most = 0;
  int64_t characters = 0;
  for (size_t i = 0; i + n <= words.size(); ++i) {
    std::string gram = Joined(words, i, n, " ");
    if (counts[gram] <= most) continue;
    most = counts[gram];
    characters = CountCodePoints(gram) * most;
  }
  return characters;
}

int64_t RepeatedGram(const std::vector<std::string>& words, size_t n, FilterMode mode) {
  std::set<std::string> seen;
  int64_t characters = 0;
  for (size_t i = 0; i + n <= words.size();) {
    std::string gram = Joined(words, i, n, "");
    if (seen.insert(mode == FilterMode::kDatatrove ? gram : Joined(words, i, n, " ")).second) {
      ++i;
      continue;
    }
    characters += CountCodePoints(gram);
    i += n;
  }
  return characters;
}

bool StartsWith(absl::string_view text, absl::string_view with) { return text.substr(0, with.size()) == with; }
bool EndsWith(absl::string_view text, absl::string_view with) {
  return text.size() >= with.size() && text.substr(text.size() - with.size()) == with;
}

}  // namespace

GopherRepetitionStats NaiveRepetition(const std::string& text, const std::vector<std::string>& words, FilterMode mode) {
  GopherRepetitionStats stats;
  stats.characters = CountCodePoints(text);
  std::vector<std::string> paragraphs = SplitAtFeeds(std::string(CharacterTable::Get().Strip(text)), 2);
  stats.paragraphs = paragraphs.size();
  stats.repeated_paragraphs = FindDuplicates(paragraphs).count;
  stats.repeated_paragraph_characters = FindDuplicates(paragraphs).characters;
  std::vector<std::string> lines = SplitAtFeeds(text, 1);
  stats.lines = lines.size();
  stats.repeated_lines = FindDuplicates(lines).count;
  stats.repeated_line_characters = FindDuplicates(lines).characters;
  for (size_t i = 0; i < stats.top_gram_characters.size(); ++i) stats.top_gram_characters[i] = TopGram(words, i + 2);
  for (size_t i = 0; i < stats.repeated_gram_characters.size(); ++i) {
    stats.repeated_gram_characters[i] = RepeatedGram(words, i + 5, mode);
  }
  return stats;
}

GopherQualityStats NaiveQuality(const std::string& text, const std::vector<std::string>& words) {
  GopherQualityStats stats;
  stats.words = words.size();
  std::set<std::string> stop_words;
  for (const std::string& word : words) {
    if (AnyOf(word, kSymbol, false)) {
      ++stats.plain_words;
      stats.plain_word_characters += CountCodePoints(word);
    }
    stats.letter_words += AnyOf(word, kLetter, true);
    for (const char* stop : {"the", "be", "to", "of", "and", "that", "have", "with"}) {
      if (word == stop) stop_words.insert(word);
    }
  }
  stats.stop_words = stop_words.size();
  for (size_t at = 0; at < text.size(); ++at) {
    absl::string_view rest = absl::string_view(text).substr(at);
    stats.hashes += rest[0] == '#';
    stats.ellipses += StartsWith(rest, "\u2026");
  }
  for (size_t at = 0; at < text.size();) {
    bool ellipsis = StartsWith(absl::string_view(text).substr(at), "...");
    stats.ellipses += ellipsis;
    at += ellipsis ? 3 : 1;
  }
  LineIterator lines(text);
  for (absl::string_view line; lines.Next(line);) {
    absl::string_view stripped = CharacterTable::Get().Strip(line);
    ++stats.lines;
    stats.bullet_lines += StartsWith(stripped, "-") || StartsWith(stripped, "\u2022");
    stats.ellipsis_lines += EndsWith(stripped, "...") || EndsWith(stripped, "\u2026");
  }
  return stats;
}

FineWebStats NaiveFineWeb(const std::string& text, const std::vector<std::string>& words) {
  FineWebStats stats;
  std::vector<std::string> lines;
  for (const std::string& line : SplitAtEachFeed(text)) {
    stats.characters += CountCodePoints(line);
    if (!CharacterTable::Get().Strip(line).empty()) lines.push_back(line);
  }
  stats.lines = lines.size();
  for (const std::string& line : lines) {
    const char* end = line.data() + line.size();
    stats.terminal_lines += CharacterTable::Get().Is(PreviousCodePoint(end), kTerminal);
    stats.short_lines += CountCodePoints(line) <= 30;
  }
  stats.repeated_line_characters = FindDuplicates(lines).characters;
  stats.line_ends = std::count(text.begin(), text.end(), '\n');
  stats.words = words.size();
  return stats;
}

}  // namespace llmctl::data
