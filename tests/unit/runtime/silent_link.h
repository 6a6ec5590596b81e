// A link to a host that takes whatever it is told and says nothing; a test overrides what it is about.
#pragma once

#include <string>
#include <vector>

#include "coordinator/runtime/host_links.h"

namespace llmctl::runtime {

class SilentLink : public HostLink {
 public:
  void Welcome() override {}
  void Probe(const core::ProbeHost&) override {}
  void Preflight(const core::RunPreflight&) override {}
  void Start(const core::StartRanks&, const std::vector<std::string>&) override {}
  void Stop(const core::StopRanks&) override {}
  void Answer(const core::AnswerCheckpoint&) override {}
  void ReadLog(const LogQuery&) override {}
  void Inspect(const InspectionQuery&) override {}
  void Refuse(const std::string&) override {}
  void Close(const std::string&) override {}
};

}  // namespace llmctl::runtime
