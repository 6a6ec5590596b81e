#include "client/command/watching.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"

#include "client/output/figures.h"
#include "client/output/progress_view.h"
#include "common/base/instant.h"
#include "common/base/status.h"

namespace llmctl::client {
namespace {

// A stream is renewed this often: a coordinator that vanished without a word is noticed by then.
constexpr absl::Duration kStreamLongest = absl::Seconds(30);
constexpr absl::Duration kAwayLongest = absl::Minutes(10);

bool IsWorthRetrying(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsOutOfRange(status) ||
         absl::IsCancelled(status) || absl::IsInternal(status) || absl::IsUnknown(status);
}

// One stream after the other, from the revision that was seen last.
class Watcher {
 public:
  Watcher(Cluster& cluster, const std::string& job, const WatchCallbacks& callbacks)
      : cluster_(cluster), callbacks_(callbacks) {
    request_.set_id(job);
  }

  absl::StatusOr<v1::Job> Run(absl::Duration timeout) {
    const absl::Duration began = Now().monotonic;
    heard_ = began;
    absl::Duration pause = absl::Milliseconds(50);
    while (true) {
      absl::Duration left = timeout - (Now().monotonic - began);
      if (left <= absl::ZeroDuration()) {
        return absl::DeadlineExceededError(absl::StrCat("job ", request_.id(), " is ", PhaseName(newest_.phase()),
                                                        " after ", HumanDuration(timeout), ", expected it to end"));
      }
      absl::Duration heard_before = heard_;
      absl::Status status = WatchOnce(std::min(left, kStreamLongest));
      if (HasEnded(newest_.phase())) return newest_;
      if (!status.ok() && !IsWorthRetrying(status)) return status;
      if (absl::IsUnavailable(status) && Now().monotonic - heard_ > kAwayLongest) return status;
      // A revision that is too old, or from a store that is no more: begin with the present state.
      if (absl::IsOutOfRange(status)) request_.set_after_revision(0);
      if (absl::IsUnavailable(status)) NoteAway();
      pause = heard_ > heard_before ? absl::Milliseconds(50) : std::min(pause * 2, absl::Seconds(1));
      std::this_thread::sleep_for(absl::ToChronoMilliseconds(std::min(pause, left)));
    }
  }

 private:
  absl::Status WatchOnce(absl::Duration longest) {
    return cluster_.WatchJob(request_, longest, [&](const v1::Job& job) {
      heard_ = Now().monotonic;
      if (away_) callbacks_.on_note("the coordinator is back");
      away_ = false;
      // From here on by id: a newer job may take the name.
      request_.set_id(job.id());
      request_.set_after_revision(job.revision());
      newest_ = job;
      callbacks_.on_job(job);
      return !HasEnded(job.phase());
    });
  }

  void NoteAway() {
    if (!away_ && !newest_.id().empty()) callbacks_.on_note("the coordinator is away; the job does not need it");
    away_ = true;
  }

  Cluster& cluster_;
  const WatchCallbacks& callbacks_;
  v1::WatchJobRequest request_;
  v1::Job newest_;
  absl::Duration heard_;
  bool away_ = false;
};

// What the SIGINT handler writes: it may not allocate.
char interrupt_text[512];

// From now on Ctrl-C ends llmctl with these words, and nothing else.
void ExplainInterrupt(const v1::Job& job) {
  std::string text = absl::StrCat("\n", job.id(), " goes on without you. Come back with `llmctl follow ", job.id(),
                                  "`, or end it with `llmctl cancel ", job.id(), "`.\n");
  std::strncpy(interrupt_text, text.c_str(), sizeof interrupt_text - 1);
  struct sigaction action = {};
  action.sa_handler = [](int) {
    ssize_t ignored = ::write(STDERR_FILENO, interrupt_text, std::strlen(interrupt_text));
    static_cast<void>(ignored);
    ::_exit(130);  // as shells say it: 128 + SIGINT
  };
  ::sigaction(SIGINT, &action, nullptr);
}

void PrintEnd(const v1::Job& job, std::ostream& out) {
  absl::Duration took = absl::Seconds(job.end_time().seconds() - job.submit_time().seconds());
  out << job.id() << " " << job.name() << " " << PhaseName(job.phase()) << " after " << HumanDuration(took);
  if (job.progress().step() > 0) {
    out << ": step " << job.progress().step() << ", loss " << FormatLoss(job.progress().loss());
  }
  out << "\n";
  if (job.phase() == v1::JOB_PHASE_FAILED) {
    out << "  why: " << job.reason() << "\n  more: llmctl logs " << job.id() << " --stderr; llmctl events " << job.id()
        << "\n";
  }
  if (!job.checkpoint().path().empty()) {
    out << "  checkpoint of step " << job.checkpoint().step() << ": " << job.checkpoint().path() << "\n"
        << "  try it: llmctl generate " << job.id() << " --prompt '...'\n";
  }
}

}  // namespace

absl::StatusOr<v1::Job> WatchUntilEnded(Cluster& cluster, const std::string& job, absl::Duration timeout,
                                        const WatchCallbacks& callbacks) {
  return Watcher(cluster, job, callbacks).Run(timeout);
}

absl::StatusOr<ExitCode> FollowJob(const std::string& job, Session& session) {
  // Structured output is for the result alone.
  std::ostream& progress_out = session.format == Format::kTable ? session.out : session.err;
  ProgressView view(progress_out, {.terminal = session.terminal, .columns = session.columns});
  bool first = true;
  WatchCallbacks callbacks;
  callbacks.on_job = [&](const v1::Job& seen) {
    if (first) ExplainInterrupt(seen);
    first = false;
    view.Show(seen, Now());
  };
  callbacks.on_note = [&](const std::string& text) { view.Note(text); };
  absl::StatusOr<v1::Job> ended = WatchUntilEnded(session.cluster, job, absl::InfiniteDuration(), callbacks);
  view.Finish();
  if (!ended.ok()) return ended.status();
  if (!session.PrintStructured(*ended)) PrintEnd(*ended, session.out);
  return ExitCodeOf(*ended);
}

}  // namespace llmctl::client
