#include "worker/data/shards/verify_once.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/file.h"
#include "tests/unit/data/written_dataset.h"

namespace llmctl::data {
namespace {

using ::testing::HasSubstr;
using Result = Verification::Result;

class VerifyOnceTest : public ::testing::Test {
 protected:
  VerifyOnceTest() { manifest_ = WriteDataset(folder_.path(), 260, {{1, 2, 256}, {259}}); }

  Verification Verify(const VerifyLimits& limits = {}) {
    absl::StatusOr<Verification> out = VerifyOnce(folder_.path(), manifest_, limits);
    EXPECT_TRUE(out.ok()) << out.status();
    return out.value_or(Verification());
  }

  // The same size, and a time of change as it was: only the content is other.
  void Damage(const std::string& name) {
    struct stat before;
    ASSERT_EQ(::stat((folder_ / name).c_str(), &before), 0);
    std::string bytes = *ReadFile(folder_ / name);
    bytes.back() ^= 1;
    ASSERT_TRUE(ReplaceFile(folder_ / name, bytes).ok());
    timespec times[2] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(::utimensat(AT_FDCWD, (folder_ / name).c_str(), times, 0), 0);
  }

  TemporaryDirectory folder_;
  DatasetManifest manifest_;
};

TEST_F(VerifyOnceTest, ReadsOnceAndRemembers) {
  EXPECT_EQ(Verify().result, Result::kReadNow);
  Verification again = Verify();
  EXPECT_EQ(again.result, Result::kKnown);
  EXPECT_EQ(again.bytes, 8 + 42 + 2 * 20);
  EXPECT_EQ(again.note, "");
}

TEST_F(VerifyOnceTest, AFileThatWasReplacedIsReadAgainThoughItLooksTheSame) {
  for (const char* name : {"train.bin", "train.idx"}) {
    ASSERT_TRUE(StampVerified(folder_.path(), manifest_).ok());
    Damage(name);
    absl::Status status = VerifyOnce(folder_.path(), manifest_, {}).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
    EXPECT_FALSE(VerifyOnce(folder_.path(), manifest_, {}).ok()) << "the damage must not be remembered as whole";
    Damage(name);
  }
}

TEST_F(VerifyOnceTest, AStampCopiedWithTheFilesIsNone) {
  Verify();
  TemporaryDirectory copy;
  std::filesystem::copy(folder_.path(), copy.path(), std::filesystem::copy_options::recursive);
  EXPECT_EQ(VerifyOnce(copy.path(), manifest_, {})->result, Result::kReadNow);
}

TEST_F(VerifyOnceTest, MoreThanTheLimitIsSaidAndNotRead) {
  Verification out = Verify({.bytes_max = 89});
  EXPECT_EQ(out.result, Result::kNotRead);
  EXPECT_THAT(out.note, HasSubstr("llmctl data verify"));
  EXPECT_EQ(Verify({.bytes_max = 90}).result, Result::kReadNow);
  EXPECT_EQ(Verify({.bytes_max = 1}).result, Result::kKnown) << "what is known needs no reading";
}

TEST_F(VerifyOnceTest, InAFolderThatCannotBeWrittenItReadsEachTimeAndSaysSo) {
  if (::geteuid() == 0) {
    // Nothing is forbidden to root; a folder in the stamp's place cannot be replaced by a file either.
    ASSERT_TRUE(MakeDirectories(folder_ / kVerifiedName).ok());
  } else {
    ASSERT_EQ(::chmod(folder_.path().c_str(), 0555), 0);
  }
  for (int start = 0; start < 2; ++start) {
    Verification out = Verify();
    EXPECT_EQ(out.result, Result::kReadNow);
    EXPECT_THAT(out.note, HasSubstr("the next start will verify again"));
  }
  ::chmod(folder_.path().c_str(), 0755);
}

TEST_F(VerifyOnceTest, AnIndexWithTheRightChecksumIsCheckedAllTheSame) {
  // One document fewer than the manifest says, and a manifest with the checksums of these files.
  SplitInfo other = WriteSplit(folder_.path(), "train", 260, {{1, 2, 256, 259}});
  manifest_.splits[0].bin_checksum = other.bin_checksum;
  manifest_.splits[0].idx_checksum = other.idx_checksum;
  EXPECT_THAT(std::string(VerifyOnce(folder_.path(), manifest_, {}).status().message()),
              HasSubstr("not of one dataset"));
}

}  // namespace
}  // namespace llmctl::data
