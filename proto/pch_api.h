// Precompiled for what handles messages of the API and speaks no gRPC.
#pragma once

#include "common/pch_base.h"
#include "llmctl/v1/admin.pb.h"
#include "llmctl/v1/jobs.pb.h"
#include "llmctl/v1/nodes.pb.h"
