// The one door for communication between ranks.
//
// Every collective of the engine goes through Communicator::Collective with the name of its site, so that each
// is counted, timed, recorded in a ring that outlives the process (the shim reads it after a crash or hang),
// and can be switched off by a test, which must then fail. Backends: in-process (ranks as threads, for tests),
// c10d Gloo, and NCCL through the CUDA plug-in.
//
// A Communicator belongs to one thread, but for Abort().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "worker/contract/phase_page.h"

namespace llmctl::engine::comm {

enum class Axis { kData, kTensor, kPipeline, kContext, kExpert, kWorld };
inline constexpr size_t kAxes = 6;
enum class Op { kAllReduceSum, kAllReduceMax, kReduceScatterSum, kAllGather, kBroadcast, kBarrier };
enum class DataType { kFloat32, kBfloat16, kFloat64, kInt64, kByte };

// `count` elements at `data`, in place for all-reduce and broadcast. For reduce-scatter `data` is the whole
// input and rank r's result lies at element r * count / size; all-gather the reverse.
struct Buffer {
  void* data = nullptr;
  int64_t count = 0;
  DataType type = DataType::kFloat32;
};

// "data", "all_reduce": as they are shown to people.
const char* AxisName(Axis axis);
const char* OpName(Op op);

// Where in the engine a collective is: `name` is a constant such as "grad.bucket" or "loss.sum", `detail` which of
// the site's calls it is, for who has to find out where a rank was ("layers.7.mlp.down_proj").
struct Site {
  Site(const char* name) : name(name) {}
  Site(absl::string_view name, absl::string_view detail) : name(name), detail(detail) {}
  absl::string_view name;
  absl::string_view detail;
};

struct SiteStatistics {
  int64_t calls = 0;
  int64_t bytes = 0;
  double seconds = 0;  // waiting included
};

// One process group of a backend; what a backend implements.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Blocks until done. Unavailable: a peer is gone or the group was aborted.
  virtual absl::Status Run(Op op, const Buffer& buffer, int root) = 0;
  // From any thread: every waiting and later Run returns Unavailable at once.
  virtual void Abort() = 0;
};

// The recorder of collectives; see worker/contract/collective_ring.h.
class Ring;

class Communicator {
 public:
  // Axes without a backend have size 1 and communicate nothing. `ring` and `phases` may be null.
  Communicator(std::map<Axis, std::unique_ptr<Backend>> axes, Ring* ring, contract::PhasePage* phases = nullptr);
  ~Communicator();

  int rank(Axis axis) const;
  int size(Axis axis) const;

  absl::Status Collective(const Site& site, Axis axis, Op op, const Buffer& buffer, int root = 0);

  void Abort();

  // Called once, by the thread whose collective is the first to fail and before it goes on: its stack still says
  // where that was.
  void OnFirstFailure(std::function<void()> handler) { on_first_failure_ = std::move(handler); }

  const std::map<std::string, SiteStatistics, std::less<>>& statistics() const { return statistics_; }

  // Tests only: calls of this site do nothing and report success.
  void SwitchOffForTest(std::string site) { switched_off_ = std::move(site); }

 private:
  std::map<Axis, std::unique_ptr<Backend>> axes_;
  Ring* ring_;
  contract::PhasePage* phases_;
  std::function<void()> on_first_failure_;
  std::map<std::string, SiteStatistics, std::less<>> statistics_;
  std::string switched_off_;
};

}  // namespace llmctl::engine::comm
