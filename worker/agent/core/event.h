// Everything that can happen to the supervisor. The vocabulary is closed: std::visit without a default arm.
//
// At the start of an agent: State is made from its stored records, one ShimFound for each shim directory,
// then AgentStarted. From then on the order is whatever the world does.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"

#include "common/base/ids.h"
#include "worker/agent/core/link.h"
#include "worker/contract/messages.h"

namespace llmctl::agent {

// ---- the host ----------------------------------------------------------------------------------------------
// A shim directory of an earlier life of this agent. If it lives, ShimConnected follows and what it kept, up to
// CaughtUp; otherwise RankExited, from its record or in its place.
struct ShimFound {
  GenerationId generation;
  int rank = 0;
  int device = 0;
  absl::Duration orphan_timeout;
};
struct AgentStarted {};

// ---- shims -------------------------------------------------------------------------------------------------
struct ShimConnected {
  GenerationId generation;
  int rank = 0;
};
// The socket broke though the shim may live; ShimConnected or RankExited follows.
struct ShimDisconnected {
  GenerationId generation;
  int rank = 0;
};
// A line from the shim or its trainer, but for `exited`, which arrives as RankExited.
struct ShimMessage {
  GenerationId generation;
  int rank = 0;
  contract::Message message;
};
// No process of the rank is left: from the shim's record, or made up by the shell if the shim could not be
// started or died.
struct RankExited {
  GenerationId generation;
  int rank = 0;
  ExitRecord exit;
};

// ---- standbys ----------------------------------------------------------------------------------------------
// Its shim is there: it can be taken, though its program may still be loading. One that was not asked for in this life
// of the agent is an earlier one's.
struct StandbyConnected {
  int64_t number = 0;
};
// Its program is loaded.
struct StandbyReady {
  int64_t number = 0;
  int64_t memory_bytes = 0;  // that it holds for itself
};
// Not by being taken.
struct StandbyEnded {
  int64_t number = 0;
  std::string why;
};

// ---- the link ----------------------------------------------------------------------------------------------
// A stream is open; the coordinator expects our Hello.
struct CoordinatorConnected {};
struct CoordinatorWelcomed {
  absl::Duration heartbeat_interval;
};
struct CoordinatorDisconnected {};
// Everything sent on this link before heartbeat `sequence` is durable at the coordinator; 0: nothing is yet.
struct HeartbeatAnswered {
  int64_t sequence = 0;
};

// ---- orders ------------------------------------------------------------------------------------------------
struct ProbeOrdered {
  GenerationId generation;
  std::string checkpoint_directory;
  std::string dataset;
  std::string nonce;
  bool write = false;
};
struct ProbeFinished {
  ProbeResult result;
};
struct PreflightOrdered {
  int64_t number = 0;
};
// Of the one RunPreflight that is not answered yet.
struct PreflightFinished {
  bool interrupted = false;  // by CancelPreflight
  contract::Preflight found;
};
struct RankOrder {
  int rank = 0;
  int device = 0;
};
// What the ranks of a gang have in common; opaque to the supervisor but for the timeout.
struct JobStart {
  std::string trainer_config;  // JSON, worker/contract/trainer_config.h
  std::map<std::string, std::string> env;
  std::vector<std::string> paths;  // the trainer will read or write below these
  std::string trainer_digest;      // of the program that all ranks of the gang run; empty: any
  absl::Duration orphan_timeout = absl::InfiniteDuration();
};
struct StartOrdered {
  GenerationId generation;
  int world_size = 0;
  std::vector<RankOrder> ranks;  // on this host
  std::vector<contract::RankAddress> rank_table;
  JobStart start;
  std::string refusal;  // not empty: the order cannot be carried out, and why (a config error)
};
struct StopOrdered {
  GenerationId generation;
  absl::Duration grace;
  std::string reason;
  bool checkpoint_first = false;
  // Part of the gang has failed, so the collectives of the rest cannot complete: their ranks end at once, after a
  // picture of where they were.
  bool failed = false;
};
struct CheckpointOrdered {
  GenerationId generation;
};
// Both with wire request ids.
struct StoreAnswered {
  GenerationId generation;
  contract::StoreReply reply;
};
struct CommitAnswered {
  GenerationId generation;
  contract::CheckpointCommitReply reply;
};

struct TimerFired {
  int64_t timer = 0;
};

using Event = std::variant<ShimFound, AgentStarted, ShimConnected, ShimDisconnected, ShimMessage, RankExited,
                           StandbyConnected, StandbyReady, StandbyEnded, CoordinatorConnected, CoordinatorWelcomed,
                           CoordinatorDisconnected, HeartbeatAnswered, ProbeOrdered, ProbeFinished, PreflightOrdered,
                           PreflightFinished, StartOrdered, StopOrdered, CheckpointOrdered, StoreAnswered,
                           CommitAnswered, TimerFired>;

}  // namespace llmctl::agent
