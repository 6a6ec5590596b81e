#include "common/base/status.h"

#include <cerrno>
#include <cstring>
#include <string>

namespace llmctl {

absl::Status AnnotateWith(const absl::Status& status, absl::string_view context) {
  absl::Status out(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) { out.SetPayload(url, payload); });
  return out;
}

absl::Status ErrnoStatus(int error_number, absl::string_view context) {
  absl::StatusCode code;
  switch (error_number) {
    case ENOENT: code = absl::StatusCode::kNotFound; break;
    case EEXIST: code = absl::StatusCode::kAlreadyExists; break;
    case EACCES:
    case EPERM:
    case EROFS: code = absl::StatusCode::kPermissionDenied; break;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM: code = absl::StatusCode::kResourceExhausted; break;
    case EINVAL:
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG: code = absl::StatusCode::kInvalidArgument; break;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case EAGAIN: code = absl::StatusCode::kUnavailable; break;
    default: code = absl::StatusCode::kInternal;
  }
  return absl::Status(code, absl::StrCat(context, ": ", std::strerror(error_number)));
}

}  // namespace llmctl
