#include "common/base/status.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace llmctl {
namespace {

TEST(Annotate, PutsContextInFrontAndKeepsTheCode) {
  absl::Status status = absl::NotFoundError("manifest.json is missing");

  absl::Status annotated = Annotate(status, "load checkpoint ", 7);

  EXPECT_EQ(annotated.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(annotated.message(), "load checkpoint 7: manifest.json is missing");
}

TEST(Annotate, LeavesSuccessAlone) { EXPECT_TRUE(Annotate(absl::OkStatus(), "context").ok()); }

TEST(ErrnoStatus, MapsFullDiskToResourceExhausted) {
  absl::Status status = ErrnoStatus(ENOSPC, "write x");

  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "write x: No space left on device");
}

}  // namespace
}  // namespace llmctl
