// RE2 for absl::string_view, which this version of RE2 does not take.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "re2/re2.h"

namespace llmctl::data {

// Const after construction, safe from any thread. Alternatives are tried as in Perl unless the longest is asked for.
class Pattern {
 public:
  enum Choice { kFirst, kLongest };

  explicit Pattern(absl::string_view expression, Choice choice = kFirst);

  bool IsIn(absl::string_view text) const { return Match<1>(text, RE2::UNANCHORED).has_value(); }
  bool IsAll(absl::string_view text) const { return Match<1>(text, RE2::ANCHOR_BOTH).has_value(); }

  // How long what `text` begins with is.
  std::optional<size_t> PrefixLength(absl::string_view text) const {
    auto groups = Match<1>(text, RE2::ANCHOR_START);
    if (!groups.has_value()) return std::nullopt;
    return (*groups)[0].size();
  }

  // The whole match and the groups in it, of the first match in `text`.
  template <size_t groups>
  std::optional<std::array<absl::string_view, groups + 1>> Find(absl::string_view text) const {
    return Match<groups + 1>(text, RE2::UNANCHORED);
  }

 private:
  template <size_t n>
  std::optional<std::array<absl::string_view, n>> Match(absl::string_view text, RE2::Anchor anchor) const {
    re2::StringPiece found[n];
    if (!expression_.Match(re2::StringPiece(text.data(), text.size()), 0, text.size(), anchor, found, n)) {
      return std::nullopt;
    }
    std::array<absl::string_view, n> out;
    for (size_t i = 0; i < n; ++i) out[i] = absl::string_view(found[i].data(), found[i].size());
    return out;
  }

  const RE2 expression_;
};

}  // namespace llmctl::data
