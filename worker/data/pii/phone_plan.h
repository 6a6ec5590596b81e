// How telephone numbers are written, here and in the world.
//
// International numbers are known by their country code and length. National forms of seventeen countries come in two
// strengths: forms that little else has ("(020) 7946 0958", "02 12 34 56 78"), and those that any number may have
// ("612 345 678"), which count only behind a word such as "tel".
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

#include "worker/data/pii/pattern.h"

namespace llmctl::data {

// Whether six zeros follow each other, whatever marks are between: sizes and dumps have them.
bool HasManyZeros(absl::string_view form);

// ITU-T E.164 (list of 2023-11): how many digits follow a country code. `digits` begins with the code.
bool IsInternationalNumber(absl::string_view digits);

// Const after construction, safe from any thread.
class PhonePlan {
 public:
  PhonePlan();

  // How much of `form` is a number from its start on, 0 for none. A form has digits, '+', '(', ')', ' ', '-', '.', '/'.
  size_t StrongLength(absl::string_view form) const { return Length(strong_, form); }
  size_t WeakLength(absl::string_view form) const { return Length(weak_, form); }

  // Whether a word for telephones stands in `before` a number.
  bool IsAnnounced(absl::string_view before) const { return announced_.IsIn(before); }
  // Whether a word stands right `before` a number that says it is something else.
  bool IsDisclaimed(absl::string_view before) const { return disclaimed_.IsIn(before); }
  // How many bytes of an extension `behind` begins with: " ext. 12".
  size_t ExtensionLength(absl::string_view behind) const;

 private:
  static size_t Length(const Pattern& pattern, absl::string_view form);

  const Pattern strong_;
  const Pattern weak_;
  const Pattern announced_;
  const Pattern disclaimed_;
  const Pattern extension_;
};

}  // namespace llmctl::data
