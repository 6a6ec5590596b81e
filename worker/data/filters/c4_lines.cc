#include "worker/data/filters/c4_lines.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "absl/strings/match.h"

#include "worker/data/text/characters.h"
#include "worker/data/text/line_iterator.h"
#include "worker/data/text/utf8.h"

namespace llmctl::data {
namespace {

constexpr absl::string_view kLoremIpsum = "lorem ipsum";
constexpr absl::string_view kJavascript = "javascript";
constexpr absl::string_view kPolicies[] = {"terms of use", "privacy policy", "cookie policy",
                                           "uses cookies", "use of cookies", "use cookies"};

struct Phrases {
  bool lorem_ipsum = false;
  bool javascript = false;
  bool policy = false;
};

constexpr uint32_t FourBytes(absl::string_view text) {
  return static_cast<uint8_t>(text[0]) | static_cast<uint8_t>(text[1]) << 8 | static_cast<uint8_t>(text[2]) << 16 |
         static_cast<uint32_t>(static_cast<uint8_t>(text[3])) << 24;
}

// In one pass: every phrase begins with one of seven groups of four bytes. Setting bit 5 makes capitals small; what
// else it changes is told apart by the full comparison.
Phrases FindPhrases(absl::string_view line) {
  Phrases found;
  for (size_t i = 0; i + 4 <= line.size(); ++i) {
    absl::string_view rest = line.substr(i);
    switch (FourBytes(rest) | 0x20202020) {
      case FourBytes("lore"):
        found.lorem_ipsum = found.lorem_ipsum || absl::StartsWithIgnoreCase(rest, kLoremIpsum);
        break;
      case FourBytes("java"):
        found.javascript = found.javascript || absl::StartsWithIgnoreCase(rest, kJavascript);
        break;
      case FourBytes("term"):
      case FourBytes("priv"):
      case FourBytes("cook"):
      case FourBytes("uses"):
      case FourBytes("use "):
        for (absl::string_view policy : kPolicies) {
          found.policy = found.policy || absl::StartsWithIgnoreCase(rest, policy);
        }
        break;
      default:
        break;
    }
  }
  return found;
}

// Length of the citation mark at the start of `text`, or 0.
size_t CitationLength(absl::string_view text) {
  for (absl::string_view mark : {"[edit]", "[citation needed]"}) {
    if (absl::StartsWith(text, mark)) return mark.size();
  }
  const CharacterTable& table = CharacterTable::Get();
  const char* at = text.data() + 1;
  const char* end = text.data() + text.size();
  while (at < end) {
    if (*at == ']') return at + 1 - text.data();
    if (!table.Is(NextCodePoint(at), kDecimal)) return 0;
  }
  return 0;
}

absl::string_view RemoveCitations(absl::string_view line, std::string& buffer) {
  if (line.find('[') == absl::string_view::npos) return line;
  buffer.clear();
  while (!line.empty()) {
    size_t length = line[0] == '[' ? CitationLength(line) : 0;
    if (length > 0) {
      line.remove_prefix(length);
      continue;
    }
    size_t next = std::min(line.find('[', 1), line.size());
    buffer.append(line.data(), next);
    line.remove_prefix(next);
  }
  return buffer;
}

bool EndsTerminally(absl::string_view line) {
  if (line.empty() || absl::EndsWith(line, "...")) return false;
  return std::strchr(".?!\"'", line.back()) != nullptr;
}

struct LineWords {
  int64_t count = 0;
  bool too_long = false;
};

LineWords CountWords(absl::string_view line, std::optional<int64_t> characters_max) {
  const CharacterTable& table = CharacterTable::Get();
  LineWords words;
  for (line = table.StripStart(line); !line.empty(); line = table.StripStart(line)) {
    size_t size = table.FindSpace(line);
    ++words.count;
    if (characters_max.has_value() && static_cast<int64_t>(size) > *characters_max &&
        CountCodePoints(line.substr(0, size)) > *characters_max) {
      words.too_long = true;
    }
    line.remove_prefix(size);
  }
  return words;
}

class LineRules {
 public:
  LineRules(const C4Settings& settings, C4Stats& stats) : settings_(settings), stats_(stats) {}

  // What stays of `line`, in `kept`; false if nothing does.
  bool Keep(absl::string_view line, absl::string_view& kept) {
    kept = CharacterTable::Get().Strip(line);
    LineWords words = CountWords(kept, settings_.word_characters_max);
    if (words.too_long) return Drop(stats_.long_word_lines);
    if (settings_.remove_citations) kept = RemoveCitations(kept, buffer_);
    if (settings_.terminal_mark_required && !EndsTerminally(kept)) return Drop(stats_.unterminated_lines);
    if (settings_.line_words_min.has_value() && words.count < *settings_.line_words_min) {
      return Drop(stats_.short_lines);
    }
    Phrases phrases = FindPhrases(kept);
    if (phrases.lorem_ipsum && stats_.lorem_ipsum_line == 0) stats_.lorem_ipsum_line = stats_.lines;
    if (phrases.javascript && settings_.drop_javascript_lines) return Drop(stats_.javascript_lines);
    bool curly = kept.find('{') != absl::string_view::npos;
    if (curly && stats_.curly_bracket_line == 0) stats_.curly_bracket_line = stats_.lines;
    if (phrases.policy && settings_.drop_policy_lines) return Drop(stats_.policy_lines);
    ++stats_.kept_lines;
    return true;
  }

 private:
  static bool Drop(int64_t& counter) {
    ++counter;
    return false;
  }

  const C4Settings& settings_;
  C4Stats& stats_;
  std::string buffer_;
};

bool IsLost(const C4Stats& stats, const C4Settings& settings) {
  return (settings.refuse_lorem_ipsum && stats.lorem_ipsum_line > 0) ||
         (settings.refuse_curly_bracket && stats.curly_bracket_line > 0);
}

// How many sentences have to be counted.
int64_t SentencesWanted(const C4Settings& settings, Depth depth) {
  if (depth == Depth::kNumbers) return std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::ceil(settings.sentences_min.value_or(0)));
}

}  // namespace

C4Stats RewriteLines(absl::string_view text, const C4Settings& settings, Depth depth, WordReader& reader,
                     std::string& rewritten) {
  C4Stats stats;
  LineRules rules(settings, stats);
  int64_t wanted = SentencesWanted(settings, depth);
  rewritten.clear();
  LineIterator lines(text);
  absl::string_view line;
  absl::string_view kept;
  while (lines.Next(line)) {
    ++stats.lines;
    bool stays = rules.Keep(line, kept);
    if (depth == Depth::kVerdict && IsLost(stats, settings)) return stats;
    if (!stays) continue;
    if (stats.sentences < wanted) stats.sentences += reader.CountSentences(kept, wanted - stats.sentences);
    if (stats.kept_lines > 1) rewritten.push_back('\n');
    rewritten.append(kept.data(), kept.size());
  }
  absl::string_view stripped = CharacterTable::Get().Strip(rewritten);
  if (stripped.size() < rewritten.size()) rewritten = std::string(stripped);
  return stats;
}

}  // namespace llmctl::data
