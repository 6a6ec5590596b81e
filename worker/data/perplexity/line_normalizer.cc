#include "worker/data/perplexity/line_normalizer.h"

#include <array>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include <unicode/bytestream.h>
#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include "common/base/check.h"
#include "worker/data/text/characters.h"
#include "worker/data/text/utf8.h"

namespace llmctl::data {
namespace {

// CCNet's table. (It also has U+FF11, the full-width 1, as a quotation mark; a digit is 0 before the table is asked.)
constexpr std::pair<char32_t, const char*> kPunctuation[] = {
    {U'，', ","}, {U'。', "."}, {U'、', ","}, {U'„', "\""}, {U'”', "\""}, {U'“', "\""}, {U'«', "\""},
    {U'»', "\""}, {U'」', "\""}, {U'「', "\""}, {U'《', "\""}, {U'》', "\""}, {U'´', "'"}, {U'∶', ":"},
    {U'：', ":"}, {U'？', "?"}, {U'！', "!"}, {U'（', "("}, {U'）', ")"}, {U'；', ";"}, {U'–', "-"},
    {U'—', " - "}, {U'．', ". "}, {U'～', "~"}, {U'’', "'"}, {U'…', "..."}, {U'━', "-"}, {U'〈', "<"},
    {U'〉', ">"}, {U'【', "["}, {U'】', "]"}, {U'％', "%"}, {U'►', "-"}};

constexpr char32_t kCapitalSigma = 0x3a3;

bool IsControl(char32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

const icu::Normalizer2& Decomposition() {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* form = icu::Normalizer2::getNFDInstance(error);
  CHECK(U_SUCCESS(error)) << "ICU carries the data of NFD within itself: " << u_errorName(error);
  return *form;
}

// All steps but that of white space, on text of any length.
std::string NormalizeBySteps(const icu::UnicodeString& text) {
  icu::UnicodeString lower(text);
  lower.toLower(icu::Locale::getRoot());
  UErrorCode error = U_ZERO_ERROR;
  icu::UnicodeString decomposed = Decomposition().normalize(lower, error);
  CHECK(U_SUCCESS(error)) << "only memory can fail: " << u_errorName(error);
  icu::UnicodeString kept;
  for (int32_t at = 0; at < decomposed.length(); at = decomposed.moveIndex32(at, 1)) {
    UChar32 code = decomposed.char32At(at);
    const int8_t category = u_charType(code);
    if (category == U_NON_SPACING_MARK) continue;
    if (category == U_DECIMAL_DIGIT_NUMBER) code = '0';
    const auto* mark = std::begin(kPunctuation);
    while (mark != std::end(kPunctuation) && mark->first != static_cast<char32_t>(code)) ++mark;
    if (mark != std::end(kPunctuation)) {
      kept.append(icu::UnicodeString::fromUTF8(mark->second));
    } else if (!IsControl(code)) {
      kept.append(code);
    }
  }
  std::string out;
  kept.toUTF8String(out);
  return out;
}

// What becomes of each character, in blocks of 256 that characters left as they are share.
class Replacements {
 public:
  // Constant, built at the first call.
  static const Replacements& Get() {
    static const Replacements* const replacements = new Replacements;
    return *replacements;
  }

  // Where a character's replacement lies in texts(), and how long it is.
  struct Entry {
    uint32_t begin;
    uint8_t bytes;
    uint8_t kind;
  };
  enum Kind : uint8_t { kSame, kReplaced, kNeedsNeighbours };

  const Entry& Of(char32_t code) const { return entries_[block_of_[code >> 8] + (code & 0xff)]; }
  const char* texts() const { return texts_.data(); }
  // For ASCII: 0 if it goes.
  char OfAscii(char byte) const { return ascii_[static_cast<uint8_t>(byte)]; }

 private:
  Replacements() : entries_(256), block_of_{} {
    for (uint32_t block = 0; block < block_of_.size(); ++block) {
      // Of planes 4 to 13, 15 and 16 nothing is more than unassigned or private.
      const uint32_t plane = block >> 8;
      if (plane < 4 || plane == 14) AddBlock(block);
    }
    for (int byte = 0; byte < 128; ++byte) {
      const Entry& entry = Of(byte);
      ascii_[byte] = entry.kind == kSame ? static_cast<char>(byte) : entry.bytes == 0 ? 0 : texts_[entry.begin];
    }
  }

  void AddBlock(uint32_t block) {
    std::array<Entry, 256> entries{};
    bool same = true;
    for (uint32_t low = 0; low < 256; ++low) {
      entries[low] = EntryOf(block << 8 | low);
      same = same && entries[low].kind == kSame;
    }
    if (same) return;
    block_of_[block] = static_cast<uint32_t>(entries_.size());
    entries_.insert(entries_.end(), entries.begin(), entries.end());
  }

  Entry EntryOf(UChar32 code) {
    if (code >= 0xd800 && code < 0xe000) return {0, 0, kSame};
    const int8_t category = u_charType(code);
    const bool moves = u_getCombiningClass(code) != 0 && category != U_NON_SPACING_MARK;
    if (code == static_cast<UChar32>(kCapitalSigma) || moves) return {0, 0, kNeedsNeighbours};
    if (category == U_UNASSIGNED || category == U_OTHER_LETTER) {
      // Most characters there are; a few of them decompose.
      if (Decomposition().isInert(code)) return {0, 0, kSame};
    }
    icu::UnicodeString before(code);
    std::string as_it_is;
    before.toUTF8String(as_it_is);
    std::string text = NormalizeBySteps(before);
    if (text == as_it_is) return {0, 0, kSame};
    Entry entry{static_cast<uint32_t>(texts_.size()), static_cast<uint8_t>(text.size()), kReplaced};
    texts_ += text;
    return entry;
  }

  std::vector<Entry> entries_;
  std::array<uint32_t, 0x110000 / 256> block_of_;
  std::string texts_;
  std::array<char, 128> ascii_;
};

}  // namespace

void NormalizeLine(absl::string_view line, std::string& out) {
  out.clear();
  line = CharacterTable::Get().Strip(line);
  const Replacements& replacements = Replacements::Get();
  const char* at = line.data();
  const char* const end = at + line.size();
  while (at < end) {
    if (static_cast<uint8_t>(*at) < 0x80) {
      const size_t start = out.size();
      const char* run = at;
      while (run < end && static_cast<uint8_t>(*run) < 0x80) ++run;
      out.resize(start + (run - at));
      char* to = out.data() + start;
      for (; at < run; ++at) {
        *to = replacements.OfAscii(*at);
        to += *to != 0;
      }
      out.resize(to - out.data());
      continue;
    }
    const char* start = at;
    const Replacements::Entry& entry = replacements.Of(NextCodePoint(at));
    if (entry.kind == Replacements::kSame) {
      out.append(start, at - start);
    } else if (entry.kind == Replacements::kReplaced) {
      out.append(replacements.texts() + entry.begin, entry.bytes);
    } else {
      out = NormalizeBySteps(icu::UnicodeString::fromUTF8(icu::StringPiece(line.data(), line.size())));
      return;
    }
  }
}

}  // namespace llmctl::data
