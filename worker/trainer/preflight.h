// `llm-trainer preflight`: is this host fit to train? Seconds of work that a sound host passes: a product of matrices
// and a sum over processes whose results are known exactly, memory that gives back what was written, a disk that keeps
// what was synced.
//
// Each check says what it measured, for the eye of a person who compares hosts; only a wrong result, an error or a
// full disk fails one, since what is slow on a shared machine is not broken.
#pragma once

#include <cstdint>
#include <string>

#include "worker/contract/preflight.h"

namespace llmctl::trainer {

struct PreflightOptions {
  std::string directory;  // on the disk to be tested
  int devices = 1;
  std::string device_kind = "cpu";
};

contract::Preflight RunPreflight(const PreflightOptions& options);

// The checks by themselves.
contract::PreflightCheck CheckMatmul();
contract::PreflightCheck CheckMemory(int64_t bytes);
// As many ranks as devices, within reason: threads of this process, over the loopback interface.
contract::PreflightCheck CheckAllReduce(int devices);
contract::PreflightCheck CheckDisk(const std::string& directory);

}  // namespace llmctl::trainer
