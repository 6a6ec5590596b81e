// Writes char_class_ranges.cc to the standard output. Run by hand, when the tables are to follow a newer Unicode:
// the classes come from the ICU that is installed, and what it does not know yet from kUnassignedInIcu.
#include <cstdio>
#include <vector>

#include <unicode/uchar.h>
#include <unicode/uversion.h>

#include "worker/data/tokenizer/char_class.h"

namespace llmctl::data {
namespace {

using enum CharClass;

// Letters and numbers of Unicode 15.1 and 16.0, which ICU 72 (15.0) does not know: what the regular expression engines
// of tokenizers 0.23.3 and tiktoken 0.14.0 match beyond ICU, of all code points.
constexpr CharRange kUnassignedInIcu[] = {
    {0x1C89, 0x1C8A, kLetter},   {0xA7CB, 0xA7CD, kLetter},   {0xA7DA, 0xA7DC, kLetter},   {0x105C0, 0x105F3, kLetter},
    {0x10D40, 0x10D49, kNumber}, {0x10D4A, 0x10D65, kLetter}, {0x10D6F, 0x10D85, kLetter}, {0x10EC2, 0x10EC4, kLetter},
    {0x11380, 0x11389, kLetter}, {0x1138B, 0x1138B, kLetter}, {0x1138E, 0x1138E, kLetter}, {0x11390, 0x113B5, kLetter},
    {0x113B7, 0x113B7, kLetter}, {0x113D1, 0x113D1, kLetter}, {0x113D3, 0x113D3, kLetter}, {0x116D0, 0x116E3, kNumber},
    {0x11BC0, 0x11BE0, kLetter}, {0x11BF0, 0x11BF9, kNumber}, {0x13460, 0x143FA, kLetter}, {0x16100, 0x1611D, kLetter},
    {0x16130, 0x16139, kNumber}, {0x16D40, 0x16D6C, kLetter}, {0x16D70, 0x16D79, kNumber}, {0x18CFF, 0x18CFF, kLetter},
    {0x1CCF0, 0x1CCF9, kNumber}, {0x1E5D0, 0x1E5ED, kLetter}, {0x1E5F0, 0x1E5F0, kLetter}, {0x1E5F1, 0x1E5FA, kNumber},
    {0x2EBF0, 0x2EE5D, kLetter},
};

CharClass ClassOf(uint32_t code_point) {
  for (const CharRange& range : kUnassignedInIcu) {
    if (code_point >= range.first && code_point <= range.last) return range.char_class;
  }
  UChar32 c = static_cast<UChar32>(code_point);
  if (U_GET_GC_MASK(c) & U_GC_L_MASK) return kLetter;
  if (U_GET_GC_MASK(c) & U_GC_N_MASK) return kNumber;
  return u_isUWhiteSpace(c) ? kSpace : kOther;
}

std::vector<CharRange> Ranges() {
  std::vector<CharRange> ranges;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    CharClass char_class = ClassOf(c);
    if (char_class == kOther) continue;
    bool goes_on = !ranges.empty() && ranges.back().last + 1 == c && ranges.back().char_class == char_class;
    if (goes_on) {
      ranges.back().last = c;
    } else {
      ranges.push_back({c, c, char_class});
    }
  }
  return ranges;
}

void Print(const std::vector<CharRange>& ranges) {
  std::printf("// Written by make_char_class_ranges.cc with ICU %s: do not edit.\n", U_ICU_VERSION);
  std::printf("#include \"worker/data/tokenizer/char_class.h\"\n\nnamespace llmctl::data {\nnamespace {\n\n");
  std::printf("constexpr CharClass L = CharClass::kLetter;\nconstexpr CharClass N = CharClass::kNumber;\n");
  std::printf("constexpr CharClass S = CharClass::kSpace;\n\nconstexpr CharRange kRanges[] = {\n");
  const char* names = "OLNS";
  for (size_t i = 0; i < ranges.size(); ++i) {
    bool last_of_line = i % 5 == 4 || i + 1 == ranges.size();
    std::printf("%s{0x%X, 0x%X, %c},%s", i % 5 == 0 ? "    " : "", ranges[i].first, ranges[i].last,
                names[static_cast<int>(ranges[i].char_class)], last_of_line ? "\n" : " ");
  }
  std::printf("};\n\n}  // namespace\n\nabsl::Span<const CharRange> CharClassRanges() { return kRanges; }\n\n");
  std::printf("}  // namespace llmctl::data\n");
}

}  // namespace
}  // namespace llmctl::data

int main() { llmctl::data::Print(llmctl::data::Ranges()); }
