#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "client/command/verbs.h"
#include "client/output/figures.h"
#include "client/output/progress_view.h"
#include "client/output/table.h"
#include "common/base/instant.h"
#include "common/base/status.h"

namespace llmctl::client {
namespace {

absl::StatusOr<v1::JobPhase> ParsePhase(const std::string& name) {
  std::vector<std::string> names;
  for (int number = v1::JOB_PHASE_UNSPECIFIED + 1; v1::JobPhase_IsValid(number); ++number) {
    auto phase = static_cast<v1::JobPhase>(number);
    if (PhaseName(phase) == name) return phase;
    names.push_back(PhaseName(phase));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--phase: found \"", name, "\", expected one of ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<v1::ListJobsRequest> MakeRequest(const ListOptions& options) {
  v1::ListJobsRequest request;
  request.set_project(options.project);
  for (const std::string& name : options.phases) {
    LLM_ASSIGN_OR_RETURN(v1::JobPhase phase, ParsePhase(name));
    request.add_phases(phase);
  }
  for (const std::string& label : options.labels) {
    std::pair<std::string, std::string> pair = absl::StrSplit(label, absl::MaxSplits('=', 1));
    if (pair.first.empty() || pair.first.size() == label.size()) {
      return absl::InvalidArgumentError(absl::StrCat("--label: found \"", label, "\", expected name=value"));
    }
    (*request.mutable_labels())[pair.first] = pair.second;
  }
  return request;
}

std::string AgeOf(const v1::Job& job, absl::Time now) {
  return HumanDuration(std::max(absl::ZeroDuration(), now - absl::FromUnixSeconds(job.submit_time().seconds())));
}

void PrintTable(const v1::ListJobsReply& jobs, std::ostream& out) {
  Table table({"ID", "NAME", "PROJECT", "PHASE", "ATTEMPT", "STEP", "LOSS", "AGE", "REASON"});
  absl::Time now = Now().wall;
  for (const v1::Job& job : jobs.jobs()) {
    const v1::Progress& progress = job.progress();
    bool stepped = progress.step() > 0;
    table.AddRow({job.id(), job.name(), job.project(), PhaseName(job.phase()), absl::StrCat(job.attempt()),
                  stepped ? absl::StrCat(progress.step(), "/", progress.steps()) : "",
                  stepped ? FormatLoss(progress.loss()) : "", AgeOf(job, now), job.reason()});
  }
  out << table.ToText();
}

}  // namespace

absl::StatusOr<ExitCode> List(const ListOptions& options, Session& session) {
  constexpr int kPageMax = 1000;
  LLM_ASSIGN_OR_RETURN(v1::ListJobsRequest request, MakeRequest(options));
  v1::ListJobsReply all;
  do {
    request.set_page_size(std::min(kPageMax, options.limit - all.jobs_size()));
    LLM_ASSIGN_OR_RETURN(v1::ListJobsReply page, session.cluster.ListJobs(request));
    all.mutable_jobs()->MergeFrom(page.jobs());
    all.set_next_page_token(page.next_page_token());
    all.set_revision(page.revision());
    request.set_page_token(page.next_page_token());
  } while (!all.next_page_token().empty() && all.jobs_size() < options.limit);
  if (session.PrintStructured(all)) return ExitCode::kOk;
  PrintTable(all, session.out);
  if (!all.next_page_token().empty()) session.err << "There are more; --limit shows them.\n";
  return ExitCode::kOk;
}

}  // namespace llmctl::client
