// What makes a job specification valid, and what an absent field means: one set of rules for the command
// line, which knows the file, and for the coordinator, which does not trust it.
//
// Bounds and choices of single fields are options in proto/llmctl/v1/job.proto; the rules between fields are
// here.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/spec/fault.h"
#include "llmctl/v1/job.pb.h"

namespace llmctl::spec {

// Fills in what was left out, so that nobody after this has to guess: the default_value of each field, and
//   model.kvHeads                  as many as heads
//   model.ffnSize                  8/3 of hiddenSize, rounded up to a multiple of 64
//   training.schedule.warmupSteps  min(2000, 10 % of the steps)
//   resources.workers.max          the same as min
// Sections that must be given are not made up. parallelism.data stays 0 (as many as the job has devices).
void ApplyDefaults(v1::JobSpec& spec);

struct ValidateOptions {
  // The coordinator cannot know the working directory of whoever wrote a relative path.
  bool absolute_paths = false;
};

// InvalidArgument with all faults, a line each ("model.heads: found 7, expected a divisor of ..."). With or
// without ApplyDefaults before it: what is absent is judged by its default.
absl::Status ValidateJobSpec(const v1::JobSpec& spec, const ValidateOptions& options = {});

// The specification with defaults, if it is valid; else the same faults.
absl::StatusOr<v1::JobSpec> ResolveJobSpec(const v1::JobSpec& spec, const ValidateOptions& options = {});

// The same for a specification that was read from a file: adds to faults that are known already, each where
// `given` has its field.
void AddJobSpecFaults(const v1::JobSpec& spec, const ValidateOptions& options, const Positions& given,
                      FaultList& faults);

}  // namespace llmctl::spec
