#include "worker/contract/phase_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/base/instant.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"

namespace llmctl::contract {
namespace {

int64_t Nanoseconds() { return absl::ToInt64Nanoseconds(Now().monotonic); }

// Looks at a page that is being changed: a change takes well under a microsecond.
constexpr int kLooksMax = 100;

}  // namespace

const char* ActivityName(Activity activity) {
  switch (activity) {
    case Activity::kStarting: return "starting";
    case Activity::kTraining: return "training";
    case Activity::kValidation: return "validation";
    case Activity::kCheckpoint: return "checkpoint";
    case Activity::kEnding: return "ending";
  }
  return "unknown";
}

const char* PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kOther: return "other";
    case Phase::kData: return "data";
    case Phase::kForward: return "forward";
    case Phase::kBackward: return "backward";
    case Phase::kCollective: return "collective";
    case Phase::kOptimizer: return "optimizer";
    case Phase::kWriting: return "writing";
    case Phase::kReading: return "reading";
    case Phase::kRendezvous: return "rendezvous";
    case Phase::kCommit: return "commit";
  }
  return "unknown";
}

const char* PhaseText(Phase phase) {
  switch (phase) {
    case Phase::kOther: return "between phases";
    case Phase::kData: return "in the data loader";
    case Phase::kForward: return "in the forward pass";
    case Phase::kBackward: return "in the backward pass";
    case Phase::kCollective: return "in a collective";
    case Phase::kOptimizer: return "in the optimizer";
    case Phase::kWriting: return "writing a checkpoint";
    case Phase::kReading: return "reading a checkpoint";
    case Phase::kRendezvous: return "forming its group";
    case Phase::kCommit: return "waiting for the commit of a checkpoint";
  }
  return "in a phase that this version does not know";
}

// The version is odd while it lives.
class PhasePage::Change {
 public:
  explicit Change(PhaseRecord& record) : version_(record.version) {
    version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
  }
  ~Change() { version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

 private:
  std::atomic_ref<uint64_t> version_;
};

absl::StatusOr<std::unique_ptr<PhasePage>> PhasePage::Create(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.valid()) return ErrnoStatus(errno, absl::StrCat("create phase page ", path));
  // Allocated, not only sized: a full disk must refuse here and not kill the process at a later store.
  if (int error = ::posix_fallocate(file.get(), 0, kPhasePageBytes); error != 0) {
    return ErrnoStatus(error, absl::StrCat("allocate phase page ", path));
  }
  void* page = ::mmap(nullptr, kPhasePageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (page == MAP_FAILED) return ErrnoStatus(errno, absl::StrCat("map phase page ", path));
  return std::unique_ptr<PhasePage>(new PhasePage(page));
}

PhasePage::PhasePage() : own_(std::make_unique<PhaseRecord>()), record_(own_.get()) {
  record_->started_nanoseconds = record_->activity_nanoseconds = record_->phase_nanoseconds =
      record_->step_nanoseconds = Nanoseconds();
}

PhasePage::PhasePage(void* page) : record_(static_cast<PhaseRecord*>(page)) {
  PhaseRecord first;
  first.pid = ::getpid();
  first.started_nanoseconds = first.activity_nanoseconds = first.phase_nanoseconds = first.step_nanoseconds =
      Nanoseconds();
  std::memcpy(page, &first, sizeof first);
}

PhasePage::~PhasePage() {
  if (own_ == nullptr) ::munmap(record_, kPhasePageBytes);
}

void PhasePage::Begin(Activity activity) {
  int64_t now = Nanoseconds();
  Change change(*record_);
  int64_t& longest = record_->longest_nanoseconds[static_cast<size_t>(record_->activity)];
  longest = std::max(longest, now - record_->activity_nanoseconds);
  record_->activity = activity;
  record_->activity_nanoseconds = now;
}

Phase PhasePage::Enter(Phase phase) {
  int64_t now = Nanoseconds();
  Change change(*record_);
  record_->spent_nanoseconds[static_cast<size_t>(record_->phase)] += now - record_->phase_nanoseconds;
  record_->phase_nanoseconds = now;
  return std::exchange(record_->phase, phase);
}

void PhasePage::Ready(int64_t step) {
  Begin(Activity::kTraining);
  Change change(*record_);
  record_->step = step;
  record_->step_nanoseconds = record_->activity_nanoseconds;
}

void PhasePage::StepDone(int64_t step) {
  int64_t now = Nanoseconds();
  Change change(*record_);
  record_->step = step;
  record_->steps_here += 1;
  record_->step_nanoseconds = now;
}

uint64_t PhasePage::pictures() const {
  return std::atomic_ref<uint64_t>(record_->pictures).load(std::memory_order_acquire);
}

absl::StatusOr<PhaseRecord> ReadPhasePage(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return ErrnoStatus(errno, absl::StrCat("open phase page ", path));
  void* page = ::mmap(nullptr, kPhasePageBytes, PROT_READ, MAP_SHARED, file.get(), 0);
  if (page == MAP_FAILED) return ErrnoStatus(errno, absl::StrCat("map phase page ", path));
  PhaseRecord copy;
  bool whole = false;
  // A trainer that was killed or stopped in the midst of a change is taken as it is: each field is whole by itself.
  // A file shorter than the page would raise a signal when it is looked at.
  bool long_enough = ::lseek(file.get(), 0, SEEK_END) >= static_cast<off_t>(kPhasePageBytes);
  for (int look = 0; long_enough && !whole && look < kLooksMax; ++look) {
    // Only read; atomic_ref has no form for what is const.
    std::atomic_ref<uint64_t> version(static_cast<PhaseRecord*>(page)->version);
    uint64_t before = version.load(std::memory_order_acquire);
    std::memcpy(&copy, page, sizeof copy);
    std::atomic_thread_fence(std::memory_order_acquire);
    whole = before % 2 == 0 && version.load(std::memory_order_relaxed) == before;
  }
  ::munmap(page, kPhasePageBytes);
  if (!long_enough || std::memcmp(copy.magic, PhaseRecord().magic, sizeof copy.magic) != 0) {
    return absl::DataLossError(absl::StrCat("phase page ", path, ": not a page of this version"));
  }
  return copy;
}

void CountPicture(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.valid() || ::lseek(file.get(), 0, SEEK_END) < static_cast<off_t>(kPhasePageBytes)) return;
  void* page = ::mmap(nullptr, kPhasePageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (page == MAP_FAILED) return;
  std::atomic_ref<uint64_t>(static_cast<PhaseRecord*>(page)->pictures).fetch_add(1, std::memory_order_acq_rel);
  ::munmap(page, kPhasePageBytes);
}

}  // namespace llmctl::contract
