#include "simulator/describe.h"

#include <iterator>
#include <variant>

#include "absl/strings/str_cat.h"

#include "common/base/overloaded.h"

namespace llmctl::simulator {
namespace {

std::string Name(const GenerationId& id) { return absl::StrCat(id.job.value(), "/g", id.generation); }

}  // namespace

std::string Describe(const core::Event& event) {
  return std::visit(
      Overloaded{
          [](const core::JobSubmitted& e) { return absl::StrCat("JobSubmitted ", e.idempotency_key); },
          [](const core::JobCancelled& e) { return absl::StrCat("JobCancelled ", e.job.value()); },
          [](const core::JobSuspended& e) { return absl::StrCat("JobSuspended ", e.job.value()); },
          [](const core::JobResumed& e) { return absl::StrCat("JobResumed ", e.job.value()); },
          [](const core::JobDeleted& e) { return absl::StrCat("JobDeleted ", e.job.value()); },
          [](const core::NodeCordoned& e) { return absl::StrCat("NodeCordoned ", e.node.value()); },
          [](const core::NodeUncordoned& e) { return absl::StrCat("NodeUncordoned ", e.node.value()); },
          [](const core::NodeDrainStarted& e) {
            return absl::StrCat("NodeDrainStarted ", e.node.value(), " within ", absl::FormatDuration(e.deadline));
          },
          [](const core::WorkerConnected& e) {
            std::string text = absl::StrCat("WorkerConnected ", e.node.id.value(), " incarnation ", e.node.incarnation);
            for (const core::ShimReport& shim : e.shims) {
              absl::StrAppend(&text, " ", Name(shim.generation), "/r", shim.rank, ":", RankPhaseName(shim.phase));
            }
            return text;
          },
          [](const core::WorkerLost& e) { return absl::StrCat("WorkerLost ", e.node.value()); },
          [](const core::PreflightFinished& e) {
            const char* how = e.interrupted ? "interrupted" : e.report.passed ? "passed" : "failed";
            return absl::StrCat("PreflightFinished ", e.node.value(), " ", e.number, " ", how);
          },
          [](const core::ProbeAnswered& e) {
            return absl::StrCat("ProbeAnswered ", e.node.value(), " ", Name(e.generation), " ", e.ok ? "ok" : e.error);
          },
          [](const core::RankChanged& e) {
            std::string text =
                absl::StrCat("RankChanged ", Name(e.generation), "/r", e.rank, " ", RankPhaseName(e.phase));
            if (e.exit.has_value()) {
              absl::StrAppend(&text, " code ", e.exit->exit_code, " signal ", e.exit->signal, " ",
                              e.exit->fatal_message);
            }
            return text;
          },
          [](const core::GangReleased& e) {
            return absl::StrCat("GangReleased ", e.node.value(), " ", Name(e.generation));
          },
          [](const core::CheckpointOffered& e) {
            return absl::StrCat("CheckpointOffered ", Name(e.generation), " step ", e.checkpoint.step);
          },
          [](const core::JobHung& e) { return absl::StrCat("JobHung ", Name(e.generation), ": ", e.text); },
          [](const core::StragglerSeen& e) { return absl::StrCat("StragglerSeen ", Name(e.generation)); },
          [](const core::PlanReady& e) {
            return absl::StrCat("PlanReady ", e.plan.revision, " places ", e.plan.gangs.size(), ", leaves ",
                                e.plan.unplaced.size());
          },
          [](const core::TimerFired& e) { return absl::StrCat("TimerFired ", e.timer); },
          [](const core::CoordinatorStarted&) { return std::string("CoordinatorStarted"); },
      },
      event);
}

const char* EventName(size_t index) {
  // In the order of core::Event.
  static constexpr const char* kNames[] = {
      "JobSubmitted",      "JobCancelled",     "JobSuspended",    "JobResumed",    "JobDeleted",
      "NodeCordoned",      "NodeUncordoned",   "NodeDrainStarted", "WorkerConnected", "WorkerLost",
      "PreflightFinished", "ProbeAnswered",    "RankChanged",     "GangReleased",  "CheckpointOffered",
      "JobHung",           "StragglerSeen",    "PlanReady",       "TimerFired",    "CoordinatorStarted"};
  static_assert(std::size(kNames) == std::variant_size_v<core::Event>, "an event has no name");
  return kNames[index];
}

}  // namespace llmctl::simulator
