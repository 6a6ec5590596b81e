#include "worker/agent/agent.h"

#include <poll.h>

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/base/digest.h"
#include "common/base/instant.h"
#include "common/base/overloaded.h"
#include "common/base/status.h"
#include "common/observe/log.h"
#include "llmctl/v1/worker_link.pb.h"
#include "worker/agent/core/step.h"
#include "worker/agent/host/evidence_archive.h"
#include "worker/agent/host/host_facts.h"
#include "worker/agent/host/kernel_log.h"
#include "worker/agent/host/probe.h"
#include "worker/agent/host/rank_log.h"
#include "worker/agent/host/rank_look.h"
#include "worker/agent/inbox.h"
#include "worker/agent/rpc/rank_mapping.h"
#include "worker/contract/shim_config.h"

namespace llmctl::agent {
namespace {

constexpr absl::Duration kBackoffMin = absl::Milliseconds(100);
constexpr absl::Duration kBackoffMax = absl::Seconds(2);
// From dialling to the Welcome.
constexpr absl::Duration kWelcomeTimeout = absl::Seconds(10);
// Looks at files of jobs at once. Each takes milliseconds, or hangs with its file system.
constexpr size_t kProbesMax = 64;

absl::Duration MonotonicNow() { return Now().monotonic; }

void LogRankChange(const Event& event) {
  if (const auto* ended = std::get_if<StandbyEnded>(&event)) {
    Log(LogLevel::kInfo, "standby-ended", {{"standby", ended->number}, {"why", ended->why}});
  }
  const auto* exited = std::get_if<RankExited>(&event);
  if (exited == nullptr) return;
  Log(LogLevel::kInfo, "rank-exited",
      {{"job", exited->generation.job.value()},
       {"generation", exited->generation.generation},
       {"rank", exited->rank},
       {"exit_code", exited->exit.exit_code},
       {"signal", exited->exit.signal},
       {"fatal", absl::StrCat(exited->exit.fatal_class, exited->exit.fatal_class.empty() ? "" : ": ",
                              exited->exit.fatal_message)}});
}

}  // namespace

Agent::Agent(Options options, StateDir state_dir, AgentMetrics& metrics)
    : coordinator_(std::move(options.coordinator)),
      identity_(std::move(options.identity)),
      trainer_(std::move(options.trainer)),
      fabric_follows_route_(identity_.fabric_address.empty()),
      roots_(options.shims.roots),
      signals_(std::move(options.signals)),
      state_dir_(std::move(state_dir)),
      metrics_(metrics),
      inbox_(std::make_shared<Inbox>()),
      shims_(std::move(options.shims), [this](Event event) { events_.push_back(std::move(event)); }),
      standbys_(std::move(options.standbys), trainer_, [this](Event event) { events_.push_back(std::move(event)); }),
      backoff_(kBackoffMin),
      // Hosts that lost one coordinator must not come back in step.
      jitter_(Fingerprint64(absl::StrCat(identity_.node, identity_.boot_id, identity_.incarnation))),
      preflight_(std::move(options.preflight),
                 [inbox = inbox_](PreflightFinished finished) { inbox->Put(Event(std::move(finished))); }),
      evidence_(std::move(options.evidence_program)),
      probes_(kProbesMax) {
  for (const Device& device : identity_.devices) state_.devices.insert(device.index);
  state_.standbys_wanted = options.standbys_wanted;
}

Agent::~Agent() = default;

absl::Status Agent::Run() {
  LLM_RETURN_IF_ERROR(state_dir_.Load(state_));
  LLM_RETURN_IF_ERROR(shims_.FindAll(MonotonicNow()));
  state_.next_standby = standbys_.FindAll();
  events_.push_back(AgentStarted{});
  while (true) {
    StepAll();
    metrics_.Publish(state_, MonotonicNow());
    std::vector<pollfd> fds = {{signals_.get(), POLLIN, 0}, {inbox_->descriptor(), POLLIN, 0}};
    std::vector<pollfd> shim_fds = shims_.Descriptors();
    fds.insert(fds.end(), shim_fds.begin(), shim_fds.end());
    std::vector<pollfd> standby_fds = standbys_.Descriptors();
    fds.insert(fds.end(), standby_fds.begin(), standby_fds.end());
    ::poll(fds.data(), fds.size(), PollTimeout(MonotonicNow()));
    absl::Duration now = MonotonicNow();
    if (fds[0].revents != 0) break;
    if (fds[1].revents != 0) DrainInbox(now);
    const size_t first_standby = 2 + shim_fds.size();
    for (size_t i = 2; i < fds.size(); ++i) {
      if (fds[i].revents == 0) continue;
      if (i < first_standby) {
        shims_.Handle(fds[i], now);
      } else {
        standbys_.Handle(fds[i]);
      }
    }
    shims_.Tick(now);
    FireTimers(now);
    CancelSilentLink(now);
    if (dialling_ && link_ == nullptr && now >= dial_at_) Dial(now);
  }
  standbys_.EndAll();
  if (link_ != nullptr) link_->Cancel();
  return absl::OkStatus();
}

void Agent::StepAll() {
  while (!events_.empty()) {
    Event event = std::move(events_.front());
    events_.pop_front();
    AttachKernelLog(event);
    LogRankChange(event);
    if (const auto* said = std::get_if<ShimMessage>(&event); said != nullptr && said->rank == 0) {
      const auto* progress = std::get_if<contract::Progress>(&said->message);
      if (progress != nullptr) metrics_.RecordProgress(said->generation.job, *progress);
    }
    fences_lost_ = false;
    for (const Command& command : Step(state_, event, Now())) Execute(command);
  }
}

void Agent::AttachKernelLog(Event& event) const {
  auto* exited = std::get_if<RankExited>(&event);
  if (exited == nullptr || exited->exit.stopped_by_agent || exited->exit.start_failed) return;
  if (exited->exit.signal == 0 && exited->exit.exit_code == 0) return;
  auto gang = state_.gangs.find(exited->generation);
  if (gang == state_.gangs.end()) return;
  auto rank = gang->second.ranks.find(exited->rank);
  if (rank != gang->second.ranks.end()) exited->exit.kernel_log = KernelLinesAbout(rank->second.pid);
}

void Agent::Execute(const Command& command) {
  auto report = [this](const char* what, const absl::Status& status) {
    if (status.ok()) return;
    metrics_.CountPersistFailure();
    Log(LogLevel::kError, "persist-failed", {{"what", what}, {"error", status.message()}});
  };
  std::visit(Overloaded{
                 [&](const PersistFences& c) {
                   absl::Status status = state_dir_.PersistFences(state_, c.job);
                   fences_lost_ = !status.ok();
                   report("fences", status);
                 },
                 // Kept in memory and sent all the same; only a crash now would lose it.
                 [&](const PersistOutbox&) { report("outbox", state_dir_.PersistOutbox(state_)); },
                 [&](const SpawnShim& c) { Spawn(c); },
                 [&](const SendToShim& c) { shims_.Send(c); },
                 [&](const RetireShim& c) { shims_.Retire(c); },
                 [&](const StartStandby& c) { standbys_.Start(c.number); },
                 [&](const EndStandby& c) { standbys_.End(c.number); },
                 [&](const DialCoordinator&) { dialling_ = true; },
                 [&](const agent::SendToCoordinator& c) { SendToCoordinator(c.message); },
                 [&](const RunProbe& c) { StartProbe(c.probe); },
                 [&](const RemoveProbe& c) {
                   LookAtFiles(c.nonce, [c] { RemoveProbeFile(c.checkpoint_directory, c.nonce); });
                 },
                 [&](const RunPreflight&) { preflight_.Begin(); },
                 [&](const CancelPreflight&) { preflight_.Cancel(); },
                 [&](const ArmTimer& c) { timers_.emplace(MonotonicNow() + c.delay, c.timer); },
                 [&](const agent::CollectEvidence& c) { CollectEvidence(c.generation); },
             },
             command);
}

void Agent::Spawn(const SpawnShim& command) {
  absl::Status fit = LookAtTrainer();
  if (fit.ok()) fit = trainer_.Check(command.start.trainer_digest);
  if (fences_lost_) fit = absl::UnavailableError("this host cannot write to its state directory");
  if (!fit.ok()) {
    if (command.standby != 0) standbys_.End(command.standby);
    ExitRecord exit = {.fatal_class = "infrastructure",
                       .fatal_message = std::string(fit.message()),
                       .start_failed = true};
    events_.push_back(RankExited{command.generation, command.rank, std::move(exit)});
    return;
  }
  if (command.standby != 0) {
    absl::StatusOr<StandbySet::Taken> standby = standbys_.Take(command.standby);
    if (standby.ok()) return shims_.Spawn(command, *std::move(standby));
  }
  shims_.Spawn(command);
}

void Agent::SendToCoordinator(const AgentMessage& message) {
  if (link_ == nullptr) return;
  v1::AgentMessage out = ToProto(message, identity_);
  if (out.has_heartbeat()) {
    // A host that waits for a job learns of a new trainer before it is given one; what is wrong shows at the start.
    LookAtTrainer().IgnoreError();
    absl::Duration now = MonotonicNow();
    for (const ShimSet::LiveRank& live : shims_.Live()) {
      absl::StatusOr<contract::PhaseRecord> page =
          contract::ReadPhasePage(absl::StrCat(live.directory, "/", contract::kPhaseFile));
      // Not there before the trainer has begun.
      if (!page.ok()) continue;
      Fill({.generation = live.generation, .rank = live.rank, .record = *page, .busy = BusyTime(*page)}, now,
           out.mutable_heartbeat()->add_pulses());
    }
  }
  link_->Send(std::move(out));
}

int Agent::PollTimeout(absl::Duration now) const {
  absl::Duration next = now + absl::Hours(1);
  if (!timers_.empty()) next = std::min(next, timers_.begin()->first);
  if (std::optional<absl::Duration> deadline = shims_.NextDeadline()) next = std::min(next, *deadline);
  if (dialling_ && link_ == nullptr) next = std::min(next, dial_at_);
  if (link_ != nullptr) next = std::min(next, heard_at_ + silence_max_);
  // Rounded up: a loop that wakes too early would spin.
  return static_cast<int>(std::max<int64_t>(absl::ToInt64Milliseconds(next - now + absl::Milliseconds(1)), 0));
}

void Agent::FireTimers(absl::Duration now) {
  while (!timers_.empty() && timers_.begin()->first <= now) {
    events_.push_back(TimerFired{timers_.begin()->second});
    timers_.erase(timers_.begin());
  }
}

void Agent::Dial(absl::Duration now) {
  absl::StatusOr<std::string> address = CoordinatorAddress(coordinator_);
  if (!address.ok()) return Redial(now, std::string(address.status().message()));
  if (fabric_follows_route_) {
    absl::StatusOr<std::string> fabric = FabricAddress(*address);
    if (!fabric.ok()) return Redial(now, std::string(fabric.status().message()));
    identity_.fabric_address = *fabric;
  }
  int64_t number = ++link_number_;
  std::shared_ptr<Inbox> inbox = inbox_;
  link_ = CoordinatorLink::Dial(
      *address, {.message = [inbox, number](v1::CoordinatorMessage m) { inbox->Put(LinkSaid{number, std::move(m)}); },
                 .closed = [inbox, number](std::string why) { inbox->Put(LinkClosed{number, std::move(why)}); }});
  heard_at_ = now;
  silence_max_ = kWelcomeTimeout;
  events_.push_back(CoordinatorConnected{});
}

void Agent::Redial(absl::Duration now, const std::string& why) {
  link_.reset();
  absl::Duration delay = backoff_ * (0.5 + 0.5 * jitter_.Uniform());
  dial_at_ = now + delay;
  backoff_ = std::min(2 * backoff_, kBackoffMax);
  Log(LogLevel::kWarning, "coordinator-away", {{"why", why}, {"next_try", absl::FormatDuration(delay)}});
  events_.push_back(CoordinatorDisconnected{});
}

void Agent::DrainInbox(absl::Duration now) {
  for (Incoming& item : inbox_->TakeAll()) {
    std::visit(Overloaded{
                   [&](LinkSaid& said) {
                     if (link_ != nullptr && said.link == link_number_) HandleLinkMessage(said.message, now);
                   },
                   [&](LinkClosed& closed) {
                     if (link_ != nullptr && closed.link == link_number_) Redial(now, closed.why);
                   },
                   [&](Event& event) { events_.push_back(std::move(event)); },
               },
               item);
  }
}

void Agent::HandleLinkMessage(const v1::CoordinatorMessage& message, absl::Duration now) {
  heard_at_ = now;
  if (message.has_refused()) {
    Log(LogLevel::kError, "coordinator-refused", {{"reason", message.refused().reason()}});
    return;
  }
  if (message.has_read_log()) return AnswerLogRequest(message.read_log());
  if (message.has_inspect()) return AnswerInspection(message.inspect(), now);
  if (message.has_welcome()) {
    if (absl::Status spoken = CheckProtocol(message.welcome()); !spoken.ok()) {
      Log(LogLevel::kError, "coordinator-refused", {{"reason", spoken.message()}});
      link_->Cancel();
      return;
    }
    backoff_ = kBackoffMin;
    silence_max_ = absl::Milliseconds(message.welcome().lease_ms());
    Log(LogLevel::kInfo, "coordinator-welcomed",
        {{"term", message.welcome().term()},
         {"build", message.welcome().build_id()},
         {"protocol", message.welcome().protocol_version()},
         {"fabric_address", identity_.fabric_address}});
  }
  if (message.message_case() == v1::CoordinatorMessage::MESSAGE_NOT_SET) {
    // From a newer coordinator, which may say more than we know.
    Log(LogLevel::kInfo, "coordinator-said-something-unknown");
  }
  if (std::optional<Event> event = ToEvent(message)) events_.push_back(*std::move(event));
}

void Agent::CancelSilentLink(absl::Duration now) {
  if (link_ == nullptr || now < heard_at_ + silence_max_) return;
  link_->Cancel();
  Redial(now, absl::StrCat("nothing heard for ", absl::FormatDuration(silence_max_)));
}

void Agent::AnswerLogRequest(const v1::ReadLog& request) {
  GenerationId generation = ToId(request.generation());
  bool evidence = request.stream() == kEvidenceStream;
  absl::StatusOr<std::string> directory =
      evidence ? state_dir_.evidence() : shims_.LogDirectory(generation, request.rank());
  bool live = shims_.IsLive(generation, request.rank());
  v1::PushLogRequest answer;
  answer.set_node(identity_.node);
  answer.set_incarnation(identity_.incarnation);
  answer.set_request_id(request.request_id());
  work_.Add([link = link_, request, directory, live, answer, generation, evidence]() mutable {
    auto read = [&]() -> absl::StatusOr<LogPiece> {
      if (!directory.ok()) return directory.status();
      if (evidence) return ReadEvidence(*directory, generation, request.offset(), request.max_bytes());
      return ReadRankLog(*directory, request.stream(), request.offset(), request.max_bytes());
    };
    absl::StatusOr<LogPiece> piece = read();
    if (piece.ok()) {
      answer.set_data(piece->data);
      answer.set_next_offset(piece->next_offset);
      answer.set_end(piece->at_end && !live);
    } else {
      answer.set_error(std::string(piece.status().message()));
    }
    absl::Status pushed = link->PushLog(answer);
    if (!pushed.ok()) Log(LogLevel::kWarning, "push-log-failed", {{"error", pushed.message()}});
  });
}

void Agent::AnswerInspection(const v1::Inspect& request, absl::Duration now) {
  GenerationId generation = ToId(request.generation());
  v1::AgentMessage answer;
  v1::Inspection& inspection = *answer.mutable_inspection();
  inspection.set_request_id(request.request_id());
  *inspection.mutable_generation() = request.generation();
  for (int rank : shims_.RanksOf(generation)) {
    absl::StatusOr<std::string> directory = shims_.LogDirectory(generation, rank);
    if (!directory.ok()) continue;
    diagnosis::RankView view = LookAtRank(*directory, now);
    view.rank = rank;
    Fill(view, inspection.add_ranks());
    shims_.Send({.generation = generation, .rank = rank, .message = contract::TakePicture{request.reason()}});
  }
  if (link_ != nullptr) link_->Send(std::move(answer));
}

void Agent::CollectEvidence(const GenerationId& generation) {
  std::vector<std::string> arguments = {
      absl::StrCat("--job=", generation.job.value()), absl::StrCat("--attempt=", generation.attempt),
      absl::StrCat("--generation=", generation.generation), absl::StrCat("--node=", identity_.node),
      absl::StrCat("--state-dir=", state_dir_.path())};
  for (int rank : shims_.RanksOf(generation)) arguments.push_back(absl::StrCat("--rank=", rank));
  evidence_.Collect(std::move(arguments));
}

absl::Status Agent::LookAtTrainer() {
  LLM_RETURN_IF_ERROR(trainer_.Look());
  if (trainer_.digest() == identity_.trainer_digest) return absl::OkStatus();
  Log(LogLevel::kInfo, "trainer-replaced", {{"from", identity_.trainer_digest}, {"to", trainer_.digest()}});
  identity_.trainer_digest = trainer_.digest();
  standbys_.EndAll();
  // The next Hello tells.
  if (link_ != nullptr) link_->Cancel();
  return absl::OkStatus();
}

void Agent::StartProbe(const ProbeOrdered& probe) {
  LookAtFiles(probe.nonce, [inbox = inbox_, probe, roots = roots_] {
    inbox->Put(Event(ProbeFinished{ProbeFiles(probe, roots)}));
  });
}

void Agent::LookAtFiles(const std::string& nonce, std::function<void()> look) {
  if (probes_.Add(nonce, std::move(look))) return;
  // Not answered: the coordinator's deadline says what there is to say, that a file system of this host may hang.
  Log(LogLevel::kError, "files-not-looked-at",
      {{"nonce", nonce}, {"why", absl::StrCat(kProbesMax, " earlier looks at files of jobs have not come back")}});
}

}  // namespace llmctl::agent
