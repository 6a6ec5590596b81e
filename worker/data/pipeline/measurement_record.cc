#include "worker/data/pipeline/measurement_record.h"

#include <cstdint>

#include "worker/data/pipeline/wire.h"

namespace llmctl::data {
namespace {

// Visits every number, in one order for both directions.
template <typename Stats, typename Visit>
void VisitRepetition(Stats& s, const Visit& visit) {
  visit(s.characters);
  visit(s.paragraphs);
  visit(s.repeated_paragraphs);
  visit(s.repeated_paragraph_characters);
  visit(s.lines);
  visit(s.repeated_lines);
  visit(s.repeated_line_characters);
  for (auto& characters : s.top_gram_characters) visit(characters);
  for (auto& characters : s.repeated_gram_characters) visit(characters);
}

template <typename Stats, typename Visit>
void VisitQuality(Stats& s, const Visit& visit) {
  visit(s.words);
  visit(s.plain_words);
  visit(s.plain_word_characters);
  visit(s.letter_words);
  visit(s.stop_words);
  visit(s.hashes);
  visit(s.ellipses);
  visit(s.lines);
  visit(s.bullet_lines);
  visit(s.ellipsis_lines);
}

template <typename Stats, typename Visit>
void VisitC4(Stats& s, const Visit& visit) {
  visit(s.lines);
  visit(s.long_word_lines);
  visit(s.unterminated_lines);
  visit(s.short_lines);
  visit(s.javascript_lines);
  visit(s.policy_lines);
  visit(s.kept_lines);
  visit(s.sentences);
  visit(s.lorem_ipsum_line);
  visit(s.curly_bracket_line);
}

template <typename Stats, typename Visit>
void VisitFineWeb(Stats& s, const Visit& visit) {
  visit(s.lines);
  visit(s.terminal_lines);
  visit(s.short_lines);
  visit(s.characters);
  visit(s.repeated_line_characters);
  visit(s.line_ends);
  visit(s.words);
}

template <typename Stats, typename Visit>
void VisitParagraphs(Stats& s, const Visit& visit) {
  visit(s.paragraphs);
  visit(s.least_long);
}

constexpr uint64_t kRepetition = 1, kQuality = 2, kC4 = 4, kFineWeb = 8, kParagraphs = 16;

template <typename Stats, typename Visit>
void VisitAll(Stats& s, const Visit& visit) {
  if (s.gopher_repetition) VisitRepetition(*s.gopher_repetition, visit);
  if (s.gopher_quality) VisitQuality(*s.gopher_quality, visit);
  if (s.c4) VisitC4(*s.c4, visit);
  if (s.fineweb) VisitFineWeb(*s.fineweb, visit);
  if (s.paragraphs) VisitParagraphs(*s.paragraphs, visit);
}

}  // namespace

void EncodeMeasurements(const FilterStats& stats, std::string& out) {
  out.clear();
  uint64_t parts = 0;
  if (stats.gopher_repetition) parts |= kRepetition;
  if (stats.gopher_quality) parts |= kQuality;
  if (stats.c4) parts |= kC4;
  if (stats.fineweb) parts |= kFineWeb;
  if (stats.paragraphs) parts |= kParagraphs;
  PutVarint(parts, out);
  VisitAll(stats, [&](int64_t number) { PutVarint(number, out); });
}

absl::StatusOr<FilterStats> DecodeMeasurements(absl::string_view bytes) {
  WireReader wire(bytes);
  uint64_t parts = wire.Varint();
  FilterStats stats;
  if (parts & kRepetition) stats.gopher_repetition.emplace();
  if (parts & kQuality) stats.gopher_quality.emplace();
  if (parts & kC4) stats.c4.emplace();
  if (parts & kFineWeb) stats.fineweb.emplace();
  if (parts & kParagraphs) stats.paragraphs.emplace();
  VisitAll(stats, [&](int64_t& number) { number = static_cast<int64_t>(wire.Varint()); });
  if (!wire.ok() || !wire.rest().empty()) return absl::DataLossError("a record of the audit holds no measurements");
  return stats;
}

}  // namespace llmctl::data
