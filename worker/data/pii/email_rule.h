// E-mail addresses and the user and password of a URL: what stands around an '@', or around a word for it.
#pragma once

#include <cstddef>


#include "worker/data/pii/pattern.h"
#include "worker/data/pii/text_scan.h"

namespace llmctl::data {

// Whether `label` is a top-level domain, in letters or as "xn--...", in any case.
bool IsTopLevelDomain(absl::string_view label);

// Const after construction, safe from any thread.
class EmailRule {
 public:
  EmailRule();

  // text[at] is an '@'.
  void FindAddress(const TextScan& scan, size_t at) const;
  // A word for '@' in brackets, "(at)", ends at `end`.
  void FindBracketed(const TextScan& scan, size_t end) const;
  // " dot " ends at `end`: "joe at example dot org".
  void FindSpelled(const TextScan& scan, size_t end) const;

 private:
  // Where the host that begins at `begin` ends, or `begin`. Its dots may be spelled, and when there is one it must be.
  size_t SpelledHostEnd(const TextScan& scan, size_t begin) const;

  const Pattern name_before_bracket_;
  const Pattern name_before_dot_;
  const Pattern label_;
  const Pattern dot_;
};

// text[at] is an '@': "://user:password@".
void FindUrlCredentials(const TextScan& scan, size_t at);

}  // namespace llmctl::data
