// The formats that people and scripts read: exact texts.
#include <limits>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "client/output/figures.h"
#include "client/output/json_view.h"
#include "client/output/progress_view.h"
#include "client/output/table.h"
#include "client/output/yaml_text.h"
#include "common/base/file.h"
#include "common/spec/read_job_spec.h"
#include "tests/unit/client/fake_cluster.h"

namespace llmctl::client {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

Instant At(double seconds) { return {absl::Seconds(seconds), absl::UnixEpoch() + absl::Seconds(seconds)}; }

TEST(Figures, AreShort) {
  EXPECT_EQ(HumanCount(0), "0");
  EXPECT_EQ(HumanCount(999.4), "999");
  EXPECT_EQ(HumanCount(999.6), "1.0k");
  EXPECT_EQ(HumanCount(12345), "12.3k");
  EXPECT_EQ(HumanCount(2.5e9), "2.5G");
  EXPECT_EQ(HumanDuration(absl::Milliseconds(1500)), "1.5s");
  EXPECT_EQ(HumanDuration(absl::Seconds(59)), "59s");
  EXPECT_EQ(HumanDuration(absl::Seconds(185)), "3m05s");
  EXPECT_EQ(HumanDuration(absl::Hours(50)), "2d02h");
  EXPECT_EQ(FormatTime(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(FormatLoss(std::numeric_limits<double>::quiet_NaN()), "-");
}

TEST(Table, AlignsColumnsByCharacters) {
  Table table({"ID", "NAME", "PHASE"});
  table.AddRow({"j-1", "größer", "running"});
  table.AddRow({"j-10", "", "two\nlines"});

  EXPECT_EQ(table.ToText(),
            "ID    NAME    PHASE\n"
            "j-1   größer  running\n"
            "j-10  -       two lines\n");
}

TEST(Table, CutsCellsThatNobodyReads) {
  Table table({"REASON"});
  table.AddRow({std::string(1000, 'x')});

  EXPECT_EQ(table.ToText(), "REASON\n" + std::string(Table::kCellMax - 3, 'x') + "...\n");
}

TEST(ToJson, GivesNumbersAndShortNamesAndEveryFieldOfAView) {
  v1::Job job = MakeJob("j-1", v1::JOB_PHASE_RUNNING, 7);
  job.mutable_progress()->set_validation_loss(std::numeric_limits<double>::quiet_NaN());
  job.mutable_submit_time()->set_seconds(1000);

  nlohmann::ordered_json json = ToJson(job);

  EXPECT_EQ(json["phase"], "running");
  EXPECT_EQ(json["attempt"], 1);
  EXPECT_EQ(json["revision"], 0) << "zeros are there too";
  EXPECT_EQ(json["progress"]["step"], 7);
  EXPECT_TRUE(json["ranks"].is_array());
  EXPECT_EQ(json["submitTime"], "1970-01-01T00:16:40Z");
  EXPECT_FALSE(json.contains("endTime"));
  EXPECT_EQ(json["progress"]["validationLoss"].dump(), "null");
}

TEST(ToYaml, QuotesWhatCouldBeTakenForAnotherType) {
  using Json = nlohmann::ordered_json;
  Json value = {{"plain", "a/b.c"}, {"number", "010"}, {"boolean", "yes"}, {"empty", ""},    {"spaces", "a b"},
                {"colon", "a: b"},  {"real", 2.5},     {"nothing", nullptr}, {"list", {1, "x"}}};
  value["maps"] = Json::array({Json{{"a", 1}, {"b", "2"}}});
  value["none"] = Json::object();

  EXPECT_EQ(ToYaml(value),
            "plain: a/b.c\n"
            "number: \"010\"\n"
            "boolean: \"yes\"\n"
            "empty: \"\"\n"
            "spaces: \"a b\"\n"
            "colon: \"a: b\"\n"
            "real: 2.5\n"
            "nothing: null\n"
            "list:\n"
            "  - 1\n"
            "  - x\n"
            "maps:\n"
            "  - a: 1\n"
            "    b: \"2\"\n"
            "none: {}\n");
}

// What `llmctl get -o yaml` shows of a specification can be submitted again.
TEST(ToYaml, SpecificationReadsBackEqual) {
  for (std::string path : {"examples/reference.yaml", "examples/quickstart.yaml"}) {
    v1::JobSpec spec = *spec::ReadJobSpec(*ReadFile(path), path);

    std::string yaml = ToYaml(ToJson(spec));
    absl::StatusOr<v1::JobSpec> again = spec::ReadJobSpec(yaml, "again.yaml");

    ASSERT_TRUE(again.ok()) << again.status() << "\n" << yaml;
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equivalent(spec, *again)) << yaml;
  }
}

TEST(ProgressView, PrintsPlainLinesWhereNobodyCanSeeThemRedrawn) {
  std::ostringstream out;
  ProgressView view(out, {.terminal = false, .line_interval = absl::Seconds(5)});

  view.Show(MakeJob("j-1", v1::JOB_PHASE_QUEUED), At(0));
  view.Show(MakeJob("j-1", v1::JOB_PHASE_RUNNING, 1), At(1));
  view.Show(MakeJob("j-1", v1::JOB_PHASE_RUNNING, 2), At(2));
  view.Show(MakeJob("j-1", v1::JOB_PHASE_RUNNING, 90), At(7));

  EXPECT_EQ(out.str(),
            "j-1 quickstart queued\n"
            "j-1 quickstart running\n"
            "j-1 step 1/600  loss 2.5000  12.3k tok/s\n"
            "j-1 step 90/600  loss 2.5000  12.3k tok/s\n");
}

TEST(ProgressView, RedrawsOneLineOnATerminal) {
  std::ostringstream out;
  ProgressView view(out, {.terminal = true, .columns = 90});

  view.Show(MakeJob("j-1", v1::JOB_PHASE_RUNNING, 300), At(0));
  view.Show(MakeJob("j-1", v1::JOB_PHASE_SUCCEEDED, 600), At(1));

  EXPECT_EQ(out.str(),
            "j-1 quickstart running\n"
            "\r\033[Kj-1 running  [==========          ] step 300/600  loss 2.5000  12.3k tok/s"
            "\r\033[Kj-1 quickstart succeeded\n");
}

TEST(ProgressView, GivesUpTheBarBeforeTheFiguresOnANarrowTerminal) {
  std::ostringstream out;
  ProgressView view(out, {.terminal = true, .columns = 46});

  view.Show(MakeJob("j-1", v1::JOB_PHASE_RUNNING, 300), At(0));

  EXPECT_THAT(out.str(), EndsWith("\r\033[Kj-1 running  step 300/600  loss 2.5000  12.3k"));
}

TEST(ProgressView, GivesCheckpointsALineOfTheirOwn) {
  std::ostringstream out;
  ProgressView view(out, {});
  v1::Job job = MakeJob("j-1", v1::JOB_PHASE_RUNNING, 100);
  view.Show(job, At(0));
  job.mutable_checkpoint()->set_step(100);
  job.mutable_checkpoint()->set_path("/c/step-100");

  view.Show(job, At(1));

  EXPECT_THAT(out.str(), EndsWith("j-1 checkpoint of step 100 committed: /c/step-100\n"));
}

TEST(ProgressText, ShowsWhatIsKnown) {
  v1::Job job = MakeJob("j-1", v1::JOB_PHASE_RUNNING, 120);
  EXPECT_THAT(ProgressText(job), Not(HasSubstr("val")));
  job.mutable_progress()->set_validation_step(100);
  job.mutable_progress()->set_validation_loss(2.4567);
  job.mutable_progress()->set_eta_seconds(80);

  EXPECT_EQ(ProgressText(job), "step 120/600  loss 2.5000  val 2.4567  12.3k tok/s  ETA 1m20s");
}

}  // namespace
}  // namespace llmctl::client
