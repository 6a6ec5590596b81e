// Precompiled for every library that speaks gRPC: these headers cost more than our own code.
#pragma once

#include <grpcpp/grpcpp.h>

#include "llmctl/v1/jobs.grpc.pb.h"
#include "llmctl/v1/nodes.grpc.pb.h"
#include "llmctl/v1/worker_link.grpc.pb.h"
