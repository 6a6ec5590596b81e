#include "worker/data/pii/pattern.h"

#include "common/base/check.h"

namespace llmctl::data {
namespace {

RE2::Options OptionsFor(Pattern::Choice choice) {
  RE2::Options options;
  options.set_longest_match(choice == Pattern::kLongest);
  return options;
}

}  // namespace

Pattern::Pattern(absl::string_view expression, Choice choice)
    : expression_(re2::StringPiece(expression.data(), expression.size()), OptionsFor(choice)) {
  CHECK(expression_.ok()) << expression << ": " << expression_.error();
}

}  // namespace llmctl::data
