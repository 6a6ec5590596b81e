// What is written in digits: telephones, cards, and the identity numbers of the United States and China.
//
// A candidate is a run of digits and of the marks that stand between groups of them. At each group of the run the
// rules look at a window of fixed size; where none fits the next group is tried.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>


#include "worker/data/pii/phone_plan.h"
#include "worker/data/pii/pattern.h"
#include "worker/data/pii/text_scan.h"

namespace llmctl::data {

// Digits and marks from some place of a text on, in ASCII: a dash for every dash, a space for every space that does not
// end the line.
struct NumberForm {
  static constexpr size_t kCharactersMax = 40;

  std::string form;
  // Where each character of the form begins in the text, and behind the last where the text goes on.
  std::array<size_t, kCharactersMax + 1> offsets;

  size_t EndOf(size_t length) const { return offsets[length]; }
};

// Const after construction, safe from any thread.
class NumberRule {
 public:
  NumberRule();

  // A seventh digit of a run ends at `end`. Types that are off are found all the same.
  void FindNumbers(TextScan& scan, size_t end) const;

 private:
  struct Place;  // of a text: what may be a number begins there
  std::optional<PiiSpan> FindAt(const TextScan& scan, size_t at, size_t run_begin) const;
  std::optional<PiiSpan> FindIdentity(const Place& place) const;
  std::optional<PiiSpan> FindCard(const Place& place) const;
  std::optional<PiiSpan> FindMobile(const Place& place) const;
  bool HasExtension(const Place& place, size_t length) const;
  std::optional<PiiSpan> FindInternational(const Place& place) const;
  std::optional<PiiSpan> FindNational(const Place& place) const;

  const PhonePlan plan_;
  const Pattern chinese_id_;
  const Pattern old_chinese_id_;
  const Pattern us_ssn_;
  const Pattern mobile_;
  const Pattern card_;
  const Pattern card_word_;
  const Pattern us_ssn_word_;
  const Pattern dump_before_;
  const Pattern dump_behind_;
  const Pattern is_chinese_;
  const Pattern chinese_id_word_;
};

}  // namespace llmctl::data
