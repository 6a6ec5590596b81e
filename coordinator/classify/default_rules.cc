// The rules compiled in, from the surest evidence to the weakest: what the kernel says of the process or its device,
// then what the trainer or its libraries say, what the kernel says of the host, then how the process ended. What a user
// asked for in vain comes before all: no broken disk explains a missing dataset. Exit codes from 10 to 70 are those of
// worker/contract/exit_codes.h.
//
// Which Xid is the hardware's and which the program's: NVIDIA's "Xid Errors" catalogue, as sorted by those who run
// large clusters (an uncorrectable memory error, NVLink, a GPU off the bus: the node; a page fault or exception in a
// kernel: the program). Exit codes 93, 201 and 202 are conventions of other launchers whose scripts people keep.
#include "coordinator/classify/failure_rules.h"

namespace llmctl::classify {
namespace {

constexpr char kDefaultRules[] = R"json({"rules": [
  {"name": "config", "when": {"fatal_classes": ["config"]}, "class": "user", "outlook": "never"},
  {"name": "xid-hardware", "when": {"xids": [48, 54, 61, 62, 63, 64, 74, 79, 92, 94, 95, 119, 120, 140, 143]},
   "class": "infrastructure", "outlook": "other-node", "strike": 3},
  {"name": "xid-program", "when": {"xids": [13, 31, 43, 45, 68, 69]},
   "class": "user", "outlook": "may-help"},
  {"name": "host-out-of-memory", "when": {"kernel_log": "Killed process \\d+|oom-kill"},
   "class": "user", "outlook": "may-help", "retries_most": 1, "budget": "memory",
   "advice": "use a smaller training.microBatchSize, or more hosts"},

  {"name": "device-out-of-memory",
   "when": {"log": "CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|STATUS_ALLOC_FAILED"},
   "class": "user", "outlook": "smaller", "advice": "use a smaller model or sequence length, or more devices"},
  {"name": "memory-ran-out", "when": {"fatal_classes": ["oom"], "signals": [9]},
   "class": "user", "outlook": "may-help", "retries_most": 1, "budget": "memory",
   "advice": "use a smaller training.microBatchSize, or more hosts"},
  {"name": "memory-refused", "when": {"fatal_classes": ["oom"]},
   "class": "user", "outlook": "smaller", "advice": "use a smaller model or sequence length, or more devices"},
  {"name": "user", "when": {"fatal_classes": ["user"]}, "class": "user", "outlook": "may-help"},
  {"name": "kernel-machine-check",
   "when": {"kernel_log": "Hardware Error\\]: .*(Uncorrected|[Ff]atal|Machine Check Exception)|EDAC .*(UE |Uncorrect)"},
   "class": "infrastructure", "outlook": "other-node", "strike": 3},
  {"name": "kernel-disk-error",
   "when": {"kernel_log": "I/O error, dev (nvme|sd|vd|xvd|dm-|md|mmcblk)|EXT4-fs error|XFS .*(corruption|shutdown)"},
   "class": "infrastructure", "outlook": "other-node", "strike": 1},
  {"name": "killed", "when": {"signals": [1, 2, 9, 15]},
   "class": "infrastructure", "outlook": "may-help"},
  {"name": "do-not-requeue", "when": {"exit_codes": [93]}, "class": "user", "outlook": "never"},
  {"name": "gpu-memory-error",
   "when": {"log": "[Uu]ncorrectable ECC|ECC_UNCORRECTABLE|[Rr]ow [Rr]emap.*[Ff]ail"},
   "class": "infrastructure", "outlook": "other-node", "strike": 3},
  {"name": "gpu-lost",
   "when": {"log": "fallen off the bus|CUDA_ERROR_(DEVICE_UNAVAILABLE|NVLINK_UNCORRECTABLE)|NVLink.*(error|fail)"},
   "class": "infrastructure", "outlook": "other-node", "strike": 3},
  {"name": "gpu-driver",
   "when": {"log": "driver version is insufficient|no CUDA-capable device|NVML.*mismatch|CUDA_ERROR_SYSTEM_"},
   "class": "infrastructure", "outlook": "other-node", "strike": 1},
  {"name": "gpu-program-error",
   "when": {"log": "device-side assert|illegal memory access|misaligned address|CUDA_ERROR_(ASSERT|ILLEGAL_ADDRESS)"},
   "class": "user", "outlook": "may-help"},
  {"name": "storage",
   "when": {"log": "No space left on device|Disk quota exceeded|(?i)stale file handle|Read-only file system|Input/output error"},
   "class": "infrastructure", "outlook": "may-help",
   "advice": "the file system is shared: look at it before the hosts"},
  {"name": "nccl-network",
   "when": {"log": "ncclSystemError|unhandled system error|IBV_WC_|ibv_.*failed|NET/IB.*(error|fail)"},
   "class": "infrastructure", "outlook": "may-help", "strike": 0.5},
  {"name": "nccl-remote", "when": {"log": "ncclRemoteError|remote process exited|NCCL.*[Cc]onnection (closed|reset)"},
   "class": "infrastructure", "outlook": "may-help", "cascade": true},
  {"name": "nccl-timeout", "when": {"log": "[Ww]atchdog caught collective operation timeout|ncclInProgress.*timeout"},
   "class": "unknown", "outlook": "may-help", "cascade": true},
  {"name": "gloo-peer",
   "when": {"log": "(?i)gloo.*(closed by peer|reset by peer|refused|broken pipe|timed out)|connection closed by peer"},
   "class": "infrastructure", "outlook": "may-help", "cascade": true},

  {"name": "orphaned", "when": {"fatal_classes": ["orphaned"]},
   "class": "infrastructure", "outlook": "may-help", "cascade": true},
  {"name": "start-refused",
   "when": {"start_failed": true, "message": "is still used by|was started or stopped here before|is being stopped"},
   "class": "infrastructure", "outlook": "may-help"},
  {"name": "start-failed", "when": {"start_failed": true},
   "class": "infrastructure", "outlook": "other-node", "strike": 1},
  {"name": "infrastructure", "when": {"fatal_classes": ["infrastructure"], "exit_codes": [67]},
   "class": "infrastructure", "outlook": "may-help", "cascade": true},
  {"name": "host", "when": {"fatal_classes": ["infrastructure"]},
   "class": "infrastructure", "outlook": "may-help"},
  {"name": "internal", "when": {"fatal_classes": ["internal"]}, "class": "unknown", "outlook": "may-help"},

  {"name": "bad-instruction-or-bus", "when": {"signals": [4, 7]},
   "class": "infrastructure", "outlook": "other-node", "strike": 1},
  {"name": "crashed", "when": {"signals": [3, 5, 6, 8, 11, 31]}, "class": "unknown", "outlook": "may-help"},

  {"name": "exit-config", "when": {"exit_codes": [64]}, "class": "user", "outlook": "never"},
  {"name": "exit-memory-refused", "when": {"exit_codes": [66]},
   "class": "user", "outlook": "smaller", "advice": "use a smaller model or sequence length, or more devices"},
  {"name": "exit-out-of-memory", "when": {"exit_codes": [247]},
   "class": "user", "outlook": "may-help", "retries_most": 1, "budget": "memory",
   "advice": "use a smaller training.microBatchSize, or more hosts"},
  {"name": "exit-infrastructure", "when": {"exit_codes": [67, 68]},
   "class": "infrastructure", "outlook": "may-help", "cascade": true},
  {"name": "exit-internal", "when": {"exit_codes": [70]}, "class": "unknown", "outlook": "may-help"},
  {"name": "exit-killed", "when": {"exit_codes": [129, 130, 137, 143]},
   "class": "infrastructure", "outlook": "may-help"},
  {"name": "exit-crashed", "when": {"exit_codes": [132, 133, 134, 135, 136, 139]},
   "class": "unknown", "outlook": "may-help"},
  {"name": "exit-gpu-driver", "when": {"exit_codes": [201, 202]},
   "class": "infrastructure", "outlook": "other-node", "strike": 1},
  {"name": "missing-module", "when": {"log": "ModuleNotFoundError|ImportError|SyntaxError|command not found"},
   "class": "user", "outlook": "never"},
  {"name": "exit-user", "when": {"exited": true}, "class": "user", "outlook": "may-help"}
]})json";

}  // namespace

absl::string_view DefaultRulesText() { return kDefaultRules; }

}  // namespace llmctl::classify
