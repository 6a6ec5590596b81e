#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "client/command/verbs.h"
#include "client/output/fields.h"
#include "client/output/figures.h"
#include "client/output/progress_view.h"
#include "client/output/table.h"
#include "common/base/status.h"

namespace llmctl::client {
namespace {

std::string TimeText(bool known, const google::protobuf::Timestamp& time) {
  return known ? FormatTime(time.seconds()) : "";
}

std::string FailureText(const v1::Job& job) {
  if (job.failure_rule().empty()) return job.failure_class();
  return absl::StrCat(job.failure_class(), " (rule ", job.failure_rule(), ", another attempt: ", job.failure_outlook(),
                      ")");
}

// Of interest only once something has failed.
std::string BudgetText(const v1::Job& job) {
  if (job.failure_rule().empty()) return "";
  return absl::StrCat(job.restarts_left(), " restarts after failures of its own, ", job.failures_left(),
                      " after those of the infrastructure before the next checkpoint");
}

Fields Describe(const v1::Job& job) {
  std::string labels = absl::StrJoin(job.labels(), ", ", absl::PairFormatter("="));
  std::string checkpoint;
  if (!job.checkpoint().path().empty()) {
    checkpoint = absl::StrCat("step ", job.checkpoint().step(), ", ", job.checkpoint().path());
  }
  return {
      {"id", job.id()},
      {"name", job.name()},
      {"project", job.project()},
      {"labels", labels},
      {"phase", PhaseName(job.phase())},
      {"reason", job.reason()},
      {"failure", FailureText(job)},
      {"first cause", job.first_cause()},
      {"next try", TimeText(job.has_retry_time(), job.retry_time())},
      {"budget", BudgetText(job)},
      {"attempt", absl::StrCat(job.attempt(), " (generation ", job.generation(), ")")},
      {"priority", absl::StrCat(job.priority())},
      {"submitted", TimeText(job.has_submit_time(), job.submit_time())},
      {"started", TimeText(job.has_start_time(), job.start_time())},
      {"ended", TimeText(job.has_end_time(), job.end_time())},
      {"progress", ProgressText(job)},
      {"checkpoint", checkpoint},
      {"dataset", job.spec().data().dataset()},
  };
}

std::string RankEnd(const v1::Rank& rank) {
  if (!rank.has_exit_code()) return rank.exit_reason();
  return absl::StrCat("exit code ", rank.exit_code(), rank.exit_reason().empty() ? "" : ": ", rank.exit_reason());
}

std::string Doing(const v1::Rank& rank) {
  if (!rank.straggler()) return rank.doing();
  return absl::StrFormat("%s; SLOW: %.1f times the median of the others", rank.doing(), rank.slowness());
}

}  // namespace

absl::StatusOr<ExitCode> Get(const std::string& name, Session& session) {
  v1::GetJobRequest request;
  request.set_id(name);
  LLM_ASSIGN_OR_RETURN(v1::Job job, session.cluster.GetJob(request));
  if (session.PrintStructured(job)) return ExitCode::kOk;
  PrintFields(Describe(job), session.out);
  if (job.ranks_size() == 0) return ExitCode::kOk;
  Table table({"RANK", "NODE", "DEVICE", "PHASE", "PID", "DOING", "END"});
  for (const v1::Rank& rank : job.ranks()) {
    table.AddRow({absl::StrCat(rank.rank()), rank.node(), absl::StrCat(rank.device()), rank.phase(),
                  rank.pid() > 0 ? absl::StrCat(rank.pid()) : "", Doing(rank), RankEnd(rank)});
  }
  session.out << "\n" << table.ToText();
  return ExitCode::kOk;
}

}  // namespace llmctl::client
