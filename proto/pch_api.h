// Precompiled for what handles messages of the API and speaks no gRPC.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "llmctl/v1/admin.pb.h"
#include "llmctl/v1/jobs.pb.h"
#include "llmctl/v1/nodes.pb.h"
