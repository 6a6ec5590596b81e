// CHECK: what only a bug of ours can break.
//
// A failed CHECK prints the condition, the place and the streamed reason, then aborts: the process is in a
// state nobody reasoned about, and going on would write it down. Kept in release builds. What the outside
// can cause (files, peers, users) is an absl::Status instead, never a CHECK.
// Debian's Abseil has no absl/log, hence our own.
#pragma once

#include <sstream>
#include <string>

namespace llmctl {
namespace check_internal {

// Collects the streamed reason and aborts at the end of the full expression.
class Failure {
 public:
  Failure(const char* file, int line, const std::string& condition);
  [[noreturn]] ~Failure();
  std::ostream& stream() { return reason_; }

 private:
  std::ostringstream reason_;
};

// Makes both arms of the macro's ?: void.
struct Voidify {
  void operator&(std::ostream&) const {}
};

template <typename A, typename B>
std::string Compared(const char* expression, const A& a, const B& b) {
  std::ostringstream out;
  out << expression << " (" << a << " vs. " << b << ")";
  return out.str();
}

}  // namespace check_internal
}  // namespace llmctl

#define LLM_CHECK_IMPL(ok, text) \
  (ok) ? (void)0                 \
       : ::llmctl::check_internal::Voidify() & ::llmctl::check_internal::Failure(__FILE__, __LINE__, text).stream()

// LibTorch's headers define some of these names too; ours are included after them and hold.
#undef CHECK
#undef CHECK_EQ
#undef CHECK_NE
#undef CHECK_LT
#undef CHECK_LE
#undef CHECK_GT
#undef CHECK_GE
#define CHECK(condition) LLM_CHECK_IMPL((condition), #condition)
#define LLM_CHECK_OP(a, op, b) \
  LLM_CHECK_IMPL(((a)op(b)), ::llmctl::check_internal::Compared(#a " " #op " " #b, (a), (b)))
#define CHECK_EQ(a, b) LLM_CHECK_OP(a, ==, b)
#define CHECK_NE(a, b) LLM_CHECK_OP(a, !=, b)
#define CHECK_LT(a, b) LLM_CHECK_OP(a, <, b)
#define CHECK_LE(a, b) LLM_CHECK_OP(a, <=, b)
#define CHECK_GT(a, b) LLM_CHECK_OP(a, >, b)
#define CHECK_GE(a, b) LLM_CHECK_OP(a, >=, b)
