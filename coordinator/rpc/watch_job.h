// Jobs.Watch: a job now and at every change, until it has ended.
#pragma once

#include <grpcpp/support/server_callback.h>

#include "coordinator/runtime/runtime.h"
#include "llmctl/v1/jobs.pb.h"

namespace llmctl::rpc {

// The reactor of one watch; it deletes itself when the call is over.
grpc::ServerWriteReactor<v1::Job>* WatchJob(runtime::Runtime& runtime, const v1::WatchJobRequest& request);

}  // namespace llmctl::rpc
