// The Jobs service: checks what comes in, turns it into requests to the runtime, and shows what the snapshots
// say. It decides nothing about jobs.
//
// Callback API: methods return at once; a request's answer is given by the runtime's callback.
#pragma once

#include <memory>

#include <grpcpp/support/server_callback.h>

#include "absl/status/status.h"

#include "coordinator/runtime/runtime.h"
#include "llmctl/v1/jobs.grpc.pb.h"

namespace llmctl::rpc {

class JobsService final : public v1::Jobs::CallbackService {
 public:
  // `runtime` outlives the server.
  explicit JobsService(runtime::Runtime& runtime) : runtime_(runtime) {}

  grpc::ServerUnaryReactor* Submit(grpc::CallbackServerContext* context, const v1::SubmitRequest* request,
                                   v1::SubmitReply* reply) override;
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context, const v1::GetJobRequest* request,
                                v1::Job* reply) override;
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context, const v1::ListJobsRequest* request,
                                 v1::ListJobsReply* reply) override;
  grpc::ServerUnaryReactor* Cancel(grpc::CallbackServerContext* context, const v1::CancelJobRequest* request,
                                   v1::JobReply* reply) override;
  grpc::ServerUnaryReactor* Suspend(grpc::CallbackServerContext* context, const v1::SuspendJobRequest* request,
                                    v1::JobReply* reply) override;
  grpc::ServerUnaryReactor* Resume(grpc::CallbackServerContext* context, const v1::ResumeJobRequest* request,
                                   v1::JobReply* reply) override;
  grpc::ServerUnaryReactor* Delete(grpc::CallbackServerContext* context, const v1::DeleteJobRequest* request,
                                   v1::DeleteJobReply* reply) override;
  grpc::ServerWriteReactor<v1::Job>* Watch(grpc::CallbackServerContext* context,
                                           const v1::WatchJobRequest* request) override;
  grpc::ServerUnaryReactor* ReadLog(grpc::CallbackServerContext* context, const v1::ReadLogRequest* request,
                                    v1::ReadLogReply* reply) override;
  grpc::ServerUnaryReactor* ListCheckpoints(grpc::CallbackServerContext* context,
                                            const v1::ListCheckpointsRequest* request,
                                            v1::ListCheckpointsReply* reply) override;
  grpc::ServerUnaryReactor* ListEvents(grpc::CallbackServerContext* context, const v1::ListEventsRequest* request,
                                       v1::ListEventsReply* reply) override;

 private:
  // The job, from a snapshot that is not older than the request wants.
  absl::Status ShowJobAt(const runtime::Snapshot& snapshot, const v1::GetJobRequest& request, v1::Job& reply) const;
  // Asks the runtime and answers with the job as it is then.
  grpc::ServerUnaryReactor* Change(grpc::CallbackServerContext* context, runtime::UserRequest request,
                                   v1::JobReply* reply);

  runtime::Runtime& runtime_;
};

}  // namespace llmctl::rpc
