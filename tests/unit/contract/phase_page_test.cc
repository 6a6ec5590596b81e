#include "worker/contract/phase_page.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "common/base/file.h"
#include "common/base/instant.h"
#include "tests/unit/temporary_directory.h"

namespace llmctl::contract {
namespace {

std::string PagePath(const char* name) {
  static const TemporaryDirectory folder;
  return folder / name;
}

TEST(PhasePage, TellsOfAProcessThatIsGone) {
  std::string path = PagePath("gone");
  pid_t child = fork();
  if (child == 0) {
    auto page = PhasePage::Create(path);
    if (!page.ok()) _exit(1);
    (*page)->Ready(7);
    (*page)->StepDone(8);
    (*page)->Enter(Phase::kBackward);
    (*page)->Enter(Phase::kCollective);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));

  auto record = ReadPhasePage(path);

  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->pid, child);
  EXPECT_EQ(record->activity, Activity::kTraining);
  EXPECT_EQ(record->phase, Phase::kCollective);
  EXPECT_EQ(record->step, 8);
  EXPECT_EQ(record->steps_here, 1);
  EXPECT_GT(record->spent_nanoseconds[static_cast<size_t>(Phase::kBackward)], 0);
  EXPECT_GE(record->phase_nanoseconds, record->step_nanoseconds);
  EXPECT_LE(record->phase_nanoseconds, absl::ToInt64Nanoseconds(Now().monotonic));
}

TEST(PhasePage, NestedPhasesEndWhereTheyBegan) {
  PhasePage page;
  {
    InPhase backward(&page, Phase::kBackward);
    {
      InPhase collective(&page, Phase::kCollective);
      EXPECT_EQ(page.record().phase, Phase::kCollective);
    }
    EXPECT_EQ(page.record().phase, Phase::kBackward);
  }
  EXPECT_EQ(page.record().phase, Phase::kOther);
  InPhase nobody_looks(nullptr, Phase::kData);
}

TEST(PhasePage, RemembersTheLongestOfEachActivity) {
  PhasePage page;
  page.Begin(Activity::kValidation);
  page.Begin(Activity::kTraining);
  int64_t first = page.record().longest_nanoseconds[static_cast<size_t>(Activity::kValidation)];

  EXPECT_GT(first, 0);
  EXPECT_EQ(page.record().longest_nanoseconds[static_cast<size_t>(Activity::kCheckpoint)], 0);
}

TEST(PhasePage, AReaderNeverSeesHalfAChange) {
  std::string path = PagePath("busy");
  auto page = PhasePage::Create(path);
  ASSERT_TRUE(page.ok()) << page.status();
  std::atomic<bool> stop = false;
  // Steps are counted in both numbers at once.
  std::thread writer([&] {
    for (int64_t step = 1; !stop; ++step) (*page)->StepDone(step);
  });

  for (int i = 0; i < 2000; ++i) {
    auto record = ReadPhasePage(path);
    ASSERT_TRUE(record.ok());
    if (record->version % 2 == 0) EXPECT_EQ(record->step, record->steps_here);
  }
  stop = true;
  writer.join();
}

TEST(PhasePage, PicturesAreCountedByAnotherProcess) {
  std::string path = PagePath("pictures");
  auto page = PhasePage::Create(path);
  ASSERT_TRUE(page.ok()) << page.status();

  CountPicture(path);
  CountPicture(PagePath("missing"));

  EXPECT_EQ((*page)->pictures(), 1u);
}

TEST(PhasePage, AFileThatIsNoneIsRefused) {
  std::string path = PagePath("other");
  ASSERT_TRUE(WriteFileAtomically(path, "short").ok());
  EXPECT_EQ(ReadPhasePage(path).status().code(), absl::StatusCode::kDataLoss);
  ASSERT_TRUE(WriteFileAtomically(path, std::string(kPhasePageBytes, 'x')).ok());
  EXPECT_EQ(ReadPhasePage(path).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace llmctl::contract
