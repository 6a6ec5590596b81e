// How requests name jobs and pages, in one place for all methods.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "coordinator/runtime/runtime.h"
#include "coordinator/runtime/snapshot.h"
#include "llmctl/v1/jobs.pb.h"

namespace llmctl::rpc {

// By id, else the newest job of that name. NotFound says what to do.
absl::StatusOr<runtime::JobView> FindJob(const runtime::Snapshot& snapshot, const std::string& id_or_name);

// The job as its user sees it now.
v1::Job ShowJob(const runtime::Runtime& runtime, const runtime::JobView& view);

// 0 means the default of 100.
absl::StatusOr<int> PageSize(int asked);
// The number that a reply's next_page_token carried; 0 for the first page.
absl::StatusOr<int64_t> PageStart(const std::string& token);

// The page of jobs that `request` asks for, newest first.
absl::Status ListJobs(const runtime::Runtime& runtime, const v1::ListJobsRequest& request, v1::ListJobsReply& reply);

}  // namespace llmctl::rpc
