#include "common/archive/tar.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "absl/strings/str_cat.h"

#include "common/base/file.h"

namespace llmctl::archive {
namespace {

std::vector<File> Files() {
  return {{"host.json", "{}\n"}, {"rank-0/empty", ""}, {"rank-0/stacks.txt", std::string(100000, 's')}};
}

TEST(Tar, ComesBackAsItWent) {
  auto files = ReadTar(WriteTar(Files(), absl::FromUnixSeconds(1700000000)));

  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(*files, Files());
}

TEST(Tar, TheSystemsOwnTarUnpacksIt) {
  std::string folder = absl::StrCat(testing::TempDir(), "/tar_test_", getpid());
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(WriteFileAtomically(folder + "/a.tar", WriteTar(Files(), absl::FromUnixSeconds(1700000000))).ok());

  ASSERT_EQ(std::system(absl::StrCat("tar -C ", folder, " -xf ", folder, "/a.tar").c_str()), 0);

  for (const File& file : Files()) EXPECT_EQ(ReadFile(absl::StrCat(folder, "/", file.name)).value(), file.content);
  std::filesystem::remove_all(folder);
}

TEST(Tar, DamageIsFoundWhereverItIs) {
  std::string whole = WriteTar(Files(), absl::UnixEpoch());

  for (size_t size : {size_t{0}, size_t{511}, size_t{600}, size_t{5000}, whole.size() - 1024}) {
    EXPECT_FALSE(ReadTar(whole.substr(0, size)).ok()) << size;
  }
  for (size_t at : {size_t{3}, size_t{125}, size_t{150}}) {
    std::string damaged = whole;
    damaged[at] ^= 1;
    EXPECT_FALSE(ReadTar(damaged).ok()) << at;
  }
}

TEST(Tar, NamesThatLeadOutOfAFolderAreRefused) {
  EXPECT_FALSE(ReadTar(WriteTar({{"../evil", "x"}}, absl::UnixEpoch())).ok());
  EXPECT_FALSE(ReadTar(WriteTar({{"/etc/evil", "x"}}, absl::UnixEpoch())).ok());
}

}  // namespace
}  // namespace llmctl::archive
