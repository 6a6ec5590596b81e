// The identity of a job specification: equal digests mean equal jobs, however the YAML was laid out.
#pragma once

#include <string>

#include "llmctl/v1/job.pb.h"

namespace llmctl::spec {

// SHA-256, as 64 hex digits, of the serialised specification with defaults applied and maps in order. The same
// for a field that was left out and one that was given its default.
std::string SpecDigest(const v1::JobSpec& spec);

}  // namespace llmctl::spec
