// Helpers for absl::Status, the type of every error that the outside can cause.
//
// A message says what was tried, on what, what was expected and found, and what to do. Annotate() puts what
// the caller was doing in front of what the callee found; nothing is ever replaced.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace llmctl {

// `status` with "<context>: " before its message; OK stays OK. Code and payloads are kept.
absl::Status AnnotateWith(const absl::Status& status, absl::string_view context);

template <typename... Parts>
absl::Status Annotate(const absl::Status& status, const Parts&... parts) {
  return status.ok() ? status : AnnotateWith(status, absl::StrCat(parts...));
}

// The status of a failed system call: "<context>: <strerror>", with the code that fits `error_number`
// (ENOENT is NotFound, ENOSPC is ResourceExhausted, ...).
absl::Status ErrnoStatus(int error_number, absl::string_view context);

}  // namespace llmctl

#define LLM_RETURN_IF_ERROR(expression)             \
  do {                                              \
    if (absl::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

#define LLM_STATUS_CONCAT_INNER(a, b) a##b
#define LLM_STATUS_CONCAT(a, b) LLM_STATUS_CONCAT_INNER(a, b)
#define LLM_ASSIGN_OR_RETURN(declaration, expression) \
  LLM_ASSIGN_OR_RETURN_IMPL(LLM_STATUS_CONCAT(status_or_, __LINE__), declaration, expression)
#define LLM_ASSIGN_OR_RETURN_IMPL(temporary, declaration, expression) \
  auto temporary = (expression);                                      \
  if (!temporary.ok()) return temporary.status();                     \
  declaration = *std::move(temporary)
