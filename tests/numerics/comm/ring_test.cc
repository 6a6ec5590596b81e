#include "worker/engine/comm/ring.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include "absl/strings/str_cat.h"

#include "common/base/file.h"

namespace llmctl::engine::comm {
namespace {

std::string RingPath(const char* name) { return absl::StrCat(testing::TempDir(), "/", getpid(), "-", name, ".ring"); }

TEST(Ring, ShowsWhereAKilledProcessWas) {
  std::string path = RingPath("killed");
  pid_t child = fork();
  if (child == 0) {
    auto ring = Ring::Create(path);
    if (!ring.ok()) _exit(1);
    uint64_t first = (*ring)->Enter("loss.sum", Axis::kData, Op::kAllReduceSum, {nullptr, 2, DataType::kFloat64});
    (*ring)->Leave(first, true);
    (*ring)->Enter("grad.bucket", Axis::kData, Op::kAllReduceSum, {nullptr, 4096, DataType::kFloat32});
    abort();
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));

  auto records = ReadRing(path);

  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_EQ(records->size(), 2u);
  EXPECT_EQ((*records)[0].state, RingState::kDone);
  EXPECT_GE((*records)[0].done_nanoseconds, (*records)[0].entered_nanoseconds);
  EXPECT_STREQ((*records)[1].site, "grad.bucket");
  EXPECT_EQ((*records)[1].state, RingState::kEntered);
  EXPECT_EQ((*records)[1].count, 4096);
  EXPECT_EQ((*records)[1].done_nanoseconds, 0);
}

TEST(Ring, KeepsTheNewestAndCutsLongNames) {
  std::string path = RingPath("full");
  auto ring = Ring::Create(path, 4);
  ASSERT_TRUE(ring.ok()) << ring.status();

  for (int i = 0; i < 10; ++i) {
    (*ring)->Leave((*ring)->Enter("a.site.name.that.is.longer.than.a.record", Axis::kData, Op::kBarrier, {}), i != 9);
  }

  auto records = ReadRing(path);
  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_EQ(records->size(), 4u);
  EXPECT_EQ(records->front().sequence, 7u);
  EXPECT_EQ(records->back().sequence, 10u);
  EXPECT_EQ(records->back().state, RingState::kFailed);
  EXPECT_EQ(std::string(records->back().site), "a.site.name.that.is.lon");
}

TEST(Ring, RefusesAFileThatIsNone) {
  std::string path = RingPath("other");
  ASSERT_TRUE(WriteFileAtomically(path, std::string(128, 'x')).ok());

  EXPECT_EQ(ReadRing(path).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace llmctl::engine::comm
