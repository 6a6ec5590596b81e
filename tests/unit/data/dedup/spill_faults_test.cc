// What disks, kills and mistakes do to the files between the tasks: refused with a reason, or done again; never a
// different result.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/file.h"
#include "tests/unit/data/dedup/dedup_runs.h"
#include "tests/unit/data/memory_files.h"
#include "tests/unit/temporary_directory.h"

namespace llmctl::data {
namespace {

using ::testing::HasSubstr;

using Texts = std::vector<std::string>;

// Counts writes and commits, and at a chosen one kills the process or says that the disk is full.
class BreakingFiles : public SpillFiles {
 public:
  enum class Fault { kNone, kKill, kDiskFull };

  BreakingFiles(Fault fault, int at) : fault_(fault), at_(at) {}
  int steps() const { return steps_; }

  absl::StatusOr<std::unique_ptr<SpillWriter>> Create(const std::string& path) override {
    absl::StatusOr<std::unique_ptr<SpillWriter>> writer = files_.Create(path);
    if (!writer.ok()) return writer;
    return std::make_unique<Writer>(*this, *std::move(writer));
  }
  absl::StatusOr<std::unique_ptr<SpillReader>> Open(const std::string& path) override { return files_.Open(path); }
  absl::Status RemoveFolder(const std::string& path) override { return files_.RemoveFolder(path); }

 private:
  class Writer : public SpillWriter {
   public:
    Writer(BreakingFiles& owner, std::unique_ptr<SpillWriter> writer) : owner_(owner), writer_(std::move(writer)) {}

    absl::Status Append(absl::string_view bytes) override {
      // Half of it arrives.
      if (owner_.IsNext()) return owner_.Break(writer_->Append(bytes.substr(0, bytes.size() / 2)));
      return writer_->Append(bytes);
    }
    absl::Status Commit() override {
      if (owner_.IsNext()) return owner_.Break(absl::OkStatus());
      absl::Status committed = writer_->Commit();
      return owner_.IsNext() ? owner_.Break(committed) : committed;
    }

   private:
    BreakingFiles& owner_;
    std::unique_ptr<SpillWriter> writer_;
  };

  bool IsNext() { return ++steps_ == at_; }

  absl::Status Break(const absl::Status&) {
    if (fault_ == Fault::kKill) ::kill(::getpid(), SIGKILL);
    return absl::ResourceExhaustedError("write: No space left on device");
  }

  LocalSpillFiles files_;
  const Fault fault_;
  const int at_;
  int steps_ = 0;
};

// Small inputs of which tasks make several runs each.
struct Work {
  explicit Work(const std::string& folder) {
    TextMaker maker(5);
    for (int i = 0; i < 3000; ++i) {
      texts.push_back(i % 4 == 3 ? texts[maker.rng().Below(texts.size())] : maker.Text(i % 10 == 0 ? 2 : 12));
    }
    parts = Cut(texts, {2000});
    settings.jaccard_min = 0.5;
    near = {settings, folder + "/near", DigestsFor(parts)};
    exact = {{TextUnit::kDocument}, folder + "/exact", DigestsFor(parts)};
  }

  absl::Status Run(SpillFiles& files) const {
    absl::Status done = RunNear(near, parts, {{&files, kTaskMemoryMin}}).status();
    return done.ok() ? RunExact(exact, parts, {{&files, kTaskMemoryMin}}).status() : done;
  }

  Texts texts;
  std::vector<Texts> parts;
  NearSettings settings;
  NearPlan near;
  ExactPlan exact;
};

struct Results {
  Results(const Work& work, SpillFiles& files)
      : near(ResultOf(work.near, files)), exact(ResultOf(work.exact, files)) {}
  bool operator==(const Results&) const = default;

  std::string near, exact;
};

class SpillFaults : public ::testing::Test {
 protected:
  // Of a run that nothing disturbs, on no disk at all.
  Results Expected() {
    Work work("/expected");
    MemoryFiles files;
    EXPECT_TRUE(work.Run(files).ok());
    return Results(work, files);
  }

  TemporaryDirectory folder_;
  LocalSpillFiles files_;
};

// A stride that no period of the steps divides meets writes, commits and what is behind them.
TEST_F(SpillFaults, KilledAtAnyWriteARunGoesOnToTheSameBytes) {
  const Results expected = Expected();
  Work counted(folder_ / "counted");
  BreakingFiles counter(BreakingFiles::Fault::kNone, 0);
  ASSERT_TRUE(counted.Run(counter).ok());
  ASSERT_GT(counter.steps(), 100);
  int killed = 0;
  for (int step = 1; step <= counter.steps(); step += 29) {
    Work work(folder_ / ("killed" + std::to_string(step)));
    pid_t child = ::fork();
    if (child == 0) {
      BreakingFiles files(BreakingFiles::Fault::kKill, step);
      static_cast<void>(work.Run(files));
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << step;
    ++killed;
    absl::Status again = work.Run(files_);
    ASSERT_TRUE(again.ok()) << step << ": " << again;
    EXPECT_TRUE(Results(work, files_) == expected) << step;
  }
  EXPECT_GT(killed, 3);
}

TEST_F(SpillFaults, AFullDiskIsSaidAndNothingHalfWrittenIsTaken) {
  const Results expected = Expected();
  for (int step : {2, 23, 95}) {
    Work work(folder_ / ("full" + std::to_string(step)));
    BreakingFiles full(BreakingFiles::Fault::kDiskFull, step);
    absl::Status status = work.Run(full);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    ASSERT_TRUE(work.Run(files_).ok());
    EXPECT_TRUE(Results(work, files_) == expected) << step;
  }
}

// A run whose last tasks have to be done again, with the folder of a finished one.
class DamagedRun {
 public:
  DamagedRun(const std::string& folder, const std::string& pristine) : work_(folder), folder_(folder) {
    std::filesystem::copy(pristine, folder, std::filesystem::copy_options::recursive);
  }
  ~DamagedRun() { std::filesystem::remove_all(folder_); }

  // Removes what the tasks after the first ones made, so that they read the parts again.
  void ForgetAllButParts() {
    for (const auto& entry : std::filesystem::directory_iterator(work_.near.folder)) RemoveUnlessPart(entry.path());
    for (const auto& entry : std::filesystem::directory_iterator(work_.exact.folder)) RemoveUnlessPart(entry.path());
  }
  void ForgetResults() {
    std::filesystem::remove_all(work_.near.folder + "/clusters");
    std::filesystem::remove_all(work_.exact.folder + "/repeats");
  }

  absl::Status RunAll(SpillFiles& files) { return work_.Run(files); }
  absl::Status RunLast(SpillFiles& files) {
    absl::Status clusters = RunClusterTask(work_.near, {&files, kTaskMemoryMin}).status();
    return clusters.ok() ? RunRepeatTask(work_.exact, {&files, kTaskMemoryMin}).status() : clusters;
  }

 private:
  static void RemoveUnlessPart(const std::filesystem::path& path) {
    if (path.filename().string().rfind("part-", 0) != 0) std::filesystem::remove_all(path);
  }

  const Work work_;
  const std::string folder_;
};

class DamagedFile : public SpillFaults, public ::testing::WithParamInterface<const char*> {};

TEST_P(DamagedFile, IsRefusedWithItsPath) {
  const std::string name = GetParam();
  const std::string pristine = folder_ / "pristine";
  ASSERT_TRUE(Work(pristine).Run(files_).ok());
  const std::string whole = BytesOf(files_, pristine + "/" + name);
  ASSERT_GT(whole.size(), 200u);
  std::string flipped = whole;
  flipped[whole.size() / 2] ^= 1;
  for (const std::string& damaged : {whole.substr(0, whole.size() - 1), whole.substr(0, whole.size() / 2), whole + "x",
                                     std::string(), whole.substr(0, 100), flipped}) {
    DamagedRun run(folder_ / "damaged", pristine);
    ASSERT_TRUE(ReplaceFile(folder_ / "damaged" + "/" + name, damaged).ok());
    const bool of_part = name.find("part-") != std::string::npos;
    of_part ? run.ForgetAllButParts() : run.ForgetResults();
    absl::Status status = of_part ? run.RunAll(files_) : run.RunLast(files_);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << damaged.size() << " bytes: " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
}

INSTANTIATE_TEST_SUITE_P(Files, DamagedFile,
                         ::testing::Values("near/part-000000/band-keys-000001", "near/part-000001/text-keys-000000",
                                           "near/part-000001/shingles-000000", "near/band-0003/pairs",
                                           "exact/part-000000/text-keys-000000", "exact/range-07/repeats"));

TEST_F(SpillFaults, FilesOfOtherTextsAreRefused) {
  Work work(folder_ / "work");
  ASSERT_TRUE(work.Run(files_).ok());
  // Part 1 is made again from other texts, and nothing that was made from the old ones.
  Work other = work;
  other.parts[1][0] = "some other text that was not there before";
  other.near.part_digests[1] = other.exact.part_digests[1] = "other";
  auto signer = *Signer::Make(other.settings);
  TaskResources resources{&files_, kTaskMemoryMin};
  ASSERT_TRUE(Feed(SignatureTask::Open(other.near, 1, *signer, resources), other.parts[1]).ok());

  absl::Status stale = RunClusterTask(other.near, resources).status();
  EXPECT_EQ(stale.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(stale.message()), HasSubstr("made from other settings or other input"));
  absl::Status old_plan = RunBandTask(work.near, 0, resources);
  EXPECT_EQ(old_plan.code(), absl::StatusCode::kFailedPrecondition) << old_plan;

  ASSERT_TRUE(other.Run(files_).ok());
  Work fresh(folder_ / "fresh");
  fresh.parts = other.parts;
  ASSERT_TRUE(fresh.Run(files_).ok());
  EXPECT_TRUE(Results(other, files_) == Results(fresh, files_));
}

// A part that was made again behind the back of its list.
TEST_F(SpillFaults, ARunOfAnotherAttemptIsRefused) {
  Work work(folder_ / "work");
  ASSERT_TRUE(work.Run(files_).ok());
  const std::string path = work.near.folder + "/part-000000/band-keys-000001";
  std::filesystem::copy_file(work.near.folder + "/part-000000/band-keys-000000", path,
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::remove_all(work.near.folder + "/band-0000");
  absl::Status status = RunBandTask(work.near, 0, {&files_, kTaskMemoryMin});
  EXPECT_THAT(std::string(status.message()), HasSubstr("not the file that its part was finished with"));
}

}  // namespace
}  // namespace llmctl::data
