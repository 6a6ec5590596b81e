#include "worker/cuda/nccl.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker/engine/comm/memory_store.h"

namespace llmctl::cuda {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST(CreateNcclBackend, WithoutAGpuSaysWhatIsMissing) {
  engine::comm::MemoryStore store;

  auto backend = CreateNcclBackend({.store = &store, .group = "data", .rank = 0, .size = 1});

  if (backend.ok()) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_THAT(backend.status().code(), AnyOf(absl::StatusCode::kUnavailable, absl::StatusCode::kUnimplemented));
  EXPECT_THAT(std::string(backend.status().message()),
              AnyOf(HasSubstr("this build has no CUDA"), HasSubstr("CUDA libraries must be installed"),
                    HasSubstr("on GPU 0")));
}

}  // namespace
}  // namespace llmctl::cuda
