#include "worker/engine/comm/ring.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/file.h"
#include "tests/unit/temporary_directory.h"
#include "worker/contract/collective_ring.h"

namespace llmctl::engine::comm {
namespace {

using contract::ReadRing;
using contract::RingState;

std::string RingPath(const char* name) {
  static const TemporaryDirectory folder;
  return folder / name;
}

TEST(Ring, ShowsWhereAKilledProcessWas) {
  std::string path = RingPath("killed");
  pid_t child = fork();
  if (child == 0) {
    auto ring = Ring::Create(path);
    if (!ring.ok()) _exit(1);
    uint64_t first = (*ring)->Enter("loss.sum", Axis::kData, Op::kAllReduceSum, {nullptr, 2, DataType::kFloat64});
    (*ring)->Leave(first, true);
    (*ring)->Enter("norm.sum", Axis::kTensor, Op::kBarrier, {});
    (*ring)->Enter({"grad.bucket", "layers.0.mlp"}, Axis::kData, Op::kAllReduceSum,
                   {nullptr, 4096, DataType::kFloat32});
    abort();
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));

  auto records = ReadRing(path);

  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_EQ(records->size(), 3u);
  EXPECT_EQ((*records)[0].state, RingState::kDone);
  EXPECT_GE((*records)[0].done_nanoseconds, (*records)[0].entered_nanoseconds);
  const contract::RingRecord& last = records->back();
  EXPECT_STREQ(last.site, "grad.bucket");
  EXPECT_STREQ(last.detail, "layers.0.mlp");
  EXPECT_STREQ(last.operation, "all_reduce");
  EXPECT_STREQ(last.group, "data");
  EXPECT_EQ(last.sequence, 3u);
  EXPECT_EQ(last.number, 2u) << "each group counts for itself";
  EXPECT_EQ(last.state, RingState::kEntered);
  EXPECT_EQ(last.count, 4096);
  EXPECT_EQ(last.element_bytes, 4);
  EXPECT_EQ(last.done_nanoseconds, 0);
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
