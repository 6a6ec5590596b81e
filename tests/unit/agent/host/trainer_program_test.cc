#include "worker/agent/host/trainer_program.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "common/base/digest.h"
#include "common/base/file.h"
#include "tests/unit/temporary_directory.h"

namespace llmctl::agent {
namespace {

TEST(TrainerProgram, ReplacedFileIsNoticedWhenItIsLookedAt) {
  TemporaryDirectory folder;
  std::string path = folder.path() + "/llm-trainer";
  ASSERT_TRUE(WriteFileAtomically(path, "one").ok());
  TrainerProgram program = *TrainerProgram::Open(path);
  EXPECT_EQ(program.digest(), Sha256("one"));

  // Same length, and perhaps the same second.
  ASSERT_TRUE(WriteFileAtomically(path, "two").ok());
  EXPECT_EQ(program.digest(), Sha256("one"));
  ASSERT_TRUE(program.Look().ok());

  EXPECT_EQ(program.digest(), Sha256("two"));
}

TEST(TrainerProgram, MissingFileIsAnErrorThatNamesIt) {
  TemporaryDirectory folder;
  std::string path = folder.path() + "/llm-trainer";

  EXPECT_EQ(TrainerProgram::Open(path).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace llmctl::agent
