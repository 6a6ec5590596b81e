#include "worker/trainer/shim_control.h"

#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "worker/trainer/failure.h"

namespace llmctl::trainer {

absl::StatusOr<contract::Assignment> ShimControl::WaitForAssignment() {
  while (true) {
    Requests requests = Take();
    if (assignment_.has_value()) return *std::exchange(assignment_, std::nullopt);
    if (requests.halt.has_value()) {
      return WithExitCode(absl::UnavailableError(requests.halt->reason), requests.halt->exit_code);
    }
    if (requests.yield.has_value()) {
      return WithExitCode(absl::UnavailableError(absl::StrCat("asked to yield before the start: ", *requests.yield)),
                          contract::kExitInfrastructure);
    }
    // SIGTERM wakes nobody: look again now and then.
    Wait(absl::Milliseconds(200));
  }
}

Requests ShimControl::Take() {
  Requests requests;
  for (contract::Message& message : link_.Take()) Sort(std::move(message), requests);
  if (terminated_ && !requests.yield.has_value()) requests.yield = "SIGTERM";
  if (!requests.halt.has_value() && link_.ended()) {
    requests.halt = Halt{contract::kExitOrphaned, absl::StrCat("the link to the shim ended: ", link_.end_reason())};
  }
  return requests;
}

// Without a default arm: a new message does not compile until somebody decides what it means here.
void ShimControl::Sort(contract::Message message, Requests& requests) {
  struct Visitor {
    ShimControl& self;
    Requests& out;

    void operator()(contract::Assignment& m) {
      if (std::exchange(self.assigned_, true)) {
        out.halt = Halt{contract::kExitInfrastructure,
                        absl::StrCat("generation ", m.generation.generation,
                                     " began while this process ran an older one; it must be started anew")};
      } else {
        self.assignment_ = std::move(m);
      }
    }
    void operator()(contract::CheckpointRequest&) { out.save = true; }
    void operator()(contract::CheckpointCommitReply& m) { out.commit_replies.push_back(std::move(m)); }
    void operator()(contract::Yield& m) { out.yield = m.reason.empty() ? "asked to yield" : m.reason; }
    void operator()(contract::Stop& m) {
      out.halt = Halt{contract::kExitInfrastructure, absl::StrCat("stopped: ", m.reason)};
    }
    void operator()(contract::Update&) {
      self.link_.Send(contract::UpdateResult{.error = "no setting of a running job can be changed by this version"});
    }
    // Taken by the link.
    void operator()(contract::Hello&) {}
    void operator()(contract::StoreReply&) {}
    // Not for a trainer.
    void operator()(contract::Ready&) {}
    void operator()(contract::Progress&) {}
    void operator()(contract::StoreRequest&) {}
    void operator()(contract::CheckpointCommit&) {}
    void operator()(contract::UpdateResult&) {}
    void operator()(contract::Fatal&) {}
    void operator()(contract::Started&) {}
    void operator()(contract::Exited&) {}
    void operator()(contract::CaughtUp&) {}
    void operator()(contract::Kill&) {}
    void operator()(contract::Release&) {}
    void operator()(contract::Waiting&) {}
    void operator()(contract::Take&) {}
    void operator()(contract::TakePicture&) {}
  };
  std::visit(Visitor{*this, requests}, message);
}

}  // namespace llmctl::trainer
