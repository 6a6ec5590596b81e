#include "worker/data/pii/pattern.h"

#include "common/base/check.h"

namespace llmctl::data {
namespace {

RE2::Options OptionsFor(Pattern::Choice choice) {
  RE2::Options options;
  options.set_longest_match(choice == Pattern::kLongest);
  // Of states that searches have come upon, which all threads share. Where it is too little a search goes on without
  // them: nothing that anybody has to be told.
  options.set_max_mem(2 << 20);
  options.set_log_errors(false);
  return options;
}

}  // namespace

Pattern::Pattern(absl::string_view expression, Choice choice)
    : expression_(re2::StringPiece(expression.data(), expression.size()), OptionsFor(choice)) {
  CHECK(expression_.ok()) << expression << ": " << expression_.error();
}

}  // namespace llmctl::data
