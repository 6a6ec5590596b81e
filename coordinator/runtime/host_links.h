// HostLinks: how commands find the connection of a host.
//
// Every connection of an agent has a number. It gets commands only from the moment when the core admits it; a
// newer one that is admitted takes its place and closes it. A command to a host without a link is dropped: the
// core sends what still applies when the host connects again.
//
// Thread-safe. Links are shared, because a connection may end while a command is on its way to it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "coordinator/core/command.h"

namespace llmctl::runtime {

struct LogQuery {
  int64_t request_id = 0;
  GenerationId generation;
  int rank = 0;
  std::string stream;
  int64_t offset = 0;
  int64_t bytes_max = 0;
};

struct InspectionQuery {
  int64_t request_id = 0;
  GenerationId generation;
  std::string reason;
};

// One connection. Calls queue a message and do not block; after the connection has ended they do nothing.
class HostLink {
 public:
  virtual ~HostLink() = default;
  // The host is admitted: the first message of all.
  virtual void Welcome() = 0;
  virtual void Probe(const core::ProbeHost& command) = 0;
  virtual void Preflight(const core::RunPreflight& command) = 0;
  // `fabric_addresses` by rank, of the whole gang.
  virtual void Start(const core::StartRanks& command, const std::vector<std::string>& fabric_addresses) = 0;
  virtual void Stop(const core::StopRanks& command) = 0;
  virtual void Answer(const core::AnswerCheckpoint& command) = 0;
  virtual void ReadLog(const LogQuery& query) = 0;
  virtual void Inspect(const InspectionQuery& query) = 0;
  // Tells the host that it is not wanted as it is, and ends the connection.
  virtual void Refuse(const std::string& reason) = 0;
  // Ends the connection; the host is to connect again.
  virtual void Close(const std::string& reason) = 0;
};

class HostLinks {
 public:
  // A connection whose host has said hello.
  void Add(int64_t link, std::shared_ptr<HostLink> connection);
  // Its connection has ended.
  void Remove(int64_t link);
  void Admit(const NodeId& node, int64_t link);
  void Refuse(int64_t link, const std::string& reason);
  // The connection of an admitted host, if it has one.
  void Close(const NodeId& node, const std::string& reason);
  void CloseAll(const std::string& reason);
  // Whether the connection still exists.
  bool Has(int64_t link) const;
  // Null if no connection of the host is admitted.
  std::shared_ptr<HostLink> Find(const NodeId& node) const;

 private:
  std::shared_ptr<HostLink> Take(int64_t link) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::map<int64_t, std::shared_ptr<HostLink>> links_ ABSL_GUARDED_BY(mutex_);
  std::map<NodeId, int64_t> admitted_ ABSL_GUARDED_BY(mutex_);  // may name a link that is gone
};

}  // namespace llmctl::runtime
