// The shim: keeps one trainer's life on record, whatever becomes of the agent.
//
// It forks the trainer, owns its output, passes messages between it and whichever agent is connected, and holds
// what an absent agent must not miss (kept_messages.h). How the trainer ended is on disk before anyone is told.
// It lives until an agent has taken that record over (`release`), or, with no agent about, until the record is
// on disk and no checkpoint commit waits to be handed on. If the shim itself is killed, the kernel kills the
// trainer, so a trainer without a shim does not exist.
//
// A standby's shim has a trainer without a job: it tells the trainer nothing and keeps no record, until an agent says
// `take`; from then on it is the shim of the rank that shim.json names, as if it had been started for it. Before that
// it ends with its trainer, and both soon after their agent.
//
// One thread, one poll loop, nothing that blocks but writes to local files.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/unique_fd.h"
#include "worker/contract/line_link.h"
#include "worker/contract/messages.h"
#include "worker/contract/shim_config.h"
#include "worker/shim/kept_messages.h"
#include "worker/shim/log_file.h"
#include "worker/shim/memory_kills.h"
#include "worker/shim/picture_taker.h"
#include "worker/shim/trainer_process.h"

namespace llmctl::shim {

class Shim {
 public:
  struct Doors {
    UniqueFd listener;  // a listening socket
    UniqueFd signals;   // a signalfd of SIGCHLD, SIGTERM and SIGUSR1
  };
  // Works in the current folder.
  Shim(contract::ShimConfig config, Doors doors);
  // Of a standby; `on_taken` is called when it has become a rank's.
  Shim(const contract::StandbyConfig& standby, Doors doors, std::function<void()> on_taken);

  // From the start of the trainer to the end of the shim.
  void Run();

 private:
  void Start();
  // The trainer hears which rank it is.
  void AssignTrainer();
  void Take();
  void PollOnce();
  int PollTimeout(int64_t now) const;
  void ActOnDeadlines(int64_t now);

  void AcceptAgent();
  void ReadAgent();
  void HandleAgent(const contract::Message& message);
  void SendToAgent(const contract::Message& message);
  void DropAgent();
  void HearOutAgent();

  void ReadTrainer();
  void HandleTrainer(const contract::Message& message);
  void SendToTrainer(const contract::Message& message);

  void ReadSignals();
  // How many bytes it took; 0: none are there now.
  size_t CopyOutput(UniqueFd& pipe, LogFile& log);
  void CopyRest(UniqueFd& pipe, LogFile& log);
  bool HasPictureOfThisFailure() const;
  void TakePicture(const std::string& reason);
  void KillTrainer(double grace_seconds);
  void EndTrainer();
  void RecordExit(contract::Exited exited);
  void PersistExit();

  contract::ShimConfig config_;  // of a standby: without an assignment
  bool standby_ = false;
  std::function<void()> on_taken_;
  std::string take_error_;  // why it could not become a rank's
  UniqueFd listener_;
  UniqueFd signals_;
  LogFile output_log_;
  LogFile error_log_;
  MemoryKillWatch memory_kills_{MemoryKills()};

  std::optional<TrainerProcess> trainer_;  // while it lives
  std::unique_ptr<contract::LineLink> trainer_link_;
  std::unique_ptr<contract::LineLink> agent_;
  KeptMessages kept_;
  bool waiting_ = false;  // the standby has said that it is loaded
  PictureTaker pictures_;
  std::optional<int64_t> pictured_at_;
  bool asked_for_picture_ = false;  // the trainer itself, which has got one
  bool progress_skipped_ = false;  // the agent was too slow for the newest progress

  std::optional<int64_t> stopped_at_;  // when we began to stop the trainer
  bool orphaned_ = false;  // because no agent was there for too long
  std::optional<contract::Exited> exited_;
  bool exit_persisted_ = false;
  bool released_ = false;

  // Monotonic milliseconds.
  int64_t agent_absent_since_ = 0;
  std::optional<int64_t> sigkill_at_;
  int64_t persist_again_at_ = 0;
};

}  // namespace llmctl::shim
