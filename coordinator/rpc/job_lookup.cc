#include "coordinator/rpc/job_lookup.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "common/base/instant.h"
#include "coordinator/rpc/job_mapping.h"

namespace llmctl::rpc {
namespace {

constexpr int kPageDefault = 100;
constexpr int kPageMost = 1000;

bool Matches(const Job& job, const v1::ListJobsRequest& request) {
  if (!request.project().empty() && job.project != request.project()) return false;
  if (!absl::StartsWith(job.name, request.name_prefix())) return false;
  if (request.phases_size() > 0 &&
      std::find(request.phases().begin(), request.phases().end(), ToProto(job.phase)) == request.phases().end()) {
    return false;
  }
  return std::all_of(request.labels().begin(), request.labels().end(), [&](const auto& label) {
    auto it = job.labels.find(label.first);
    return it != job.labels.end() && it->second == label.second;
  });
}

}  // namespace

absl::StatusOr<runtime::JobView> FindJob(const runtime::Snapshot& snapshot, const std::string& id_or_name) {
  if (id_or_name.empty()) return absl::InvalidArgumentError("id: expected the id or name of a job, found nothing");
  if (const runtime::JobView* view = snapshot.FindJob(JobId(id_or_name))) return *view;
  if (const runtime::JobView* view = snapshot.FindNewestNamed(id_or_name)) return *view;
  return absl::NotFoundError(
      absl::StrCat("no job has the id or name '", id_or_name, "': `llmctl list` shows the jobs there are"));
}

v1::Job ShowJob(const runtime::Runtime& runtime, const runtime::JobView& view) {
  const Job& job = *view.job;
  v1::Job shown = ToProto(view, runtime.progress().Newest(job.id));
  if (job.attempt && HasLiveGang(job.phase)) {
    AddLiveRanks(runtime.ranks().Live({job.id, job.attempt->number, job.attempt->generation}, Now()), shown);
  }
  return shown;
}

absl::StatusOr<int> PageSize(int asked) {
  if (asked < 0) return absl::InvalidArgumentError(absl::StrCat("page_size: expected at least 1, found ", asked));
  return asked == 0 ? kPageDefault : std::min(asked, kPageMost);
}

absl::StatusOr<int64_t> PageStart(const std::string& token) {
  int64_t start = 0;
  if (!token.empty() && (!absl::SimpleAtoi(token, &start) || start < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("page_token: expected the next_page_token of an earlier reply, found '", token, "'"));
  }
  return start;
}

absl::Status ListJobs(const runtime::Runtime& runtime, const v1::ListJobsRequest& request, v1::ListJobsReply& reply) {
  LLM_ASSIGN_OR_RETURN(int size, PageSize(request.page_size()));
  LLM_ASSIGN_OR_RETURN(int64_t before, PageStart(request.page_token()));
  std::shared_ptr<const runtime::Snapshot> snapshot = runtime.snapshot();
  int64_t last = 0;
  snapshot->VisitNewestFirst(before, [&](const runtime::JobView& view) {
    if (!Matches(*view.job, request)) return true;
    if (reply.jobs_size() == size) {
      reply.set_next_page_token(absl::StrCat(last));
      return false;
    }
    last = runtime::JobNumber(view.job->id);
    *reply.add_jobs() = ShowJob(runtime, view);
    return true;
  });
  reply.set_revision(snapshot->revision());
  return absl::OkStatus();
}

}  // namespace llmctl::rpc
