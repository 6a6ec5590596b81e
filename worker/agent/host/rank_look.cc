#include "worker/agent/host/rank_look.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "common/base/file.h"
#include "worker/agent/host/shim_process.h"
#include "worker/contract/collective_ring.h"
#include "worker/contract/shim_config.h"

namespace llmctl::agent {
namespace {

double Since(int64_t nanoseconds, absl::Duration now) {
  return std::max(0.0, absl::ToDoubleSeconds(now - absl::Nanoseconds(nanoseconds)));
}

std::string ExitText(const contract::Exited& exited) {
  std::string how = absl::StrCat("ended with exit code ", exited.exit_code);
  if (exited.signal != 0) how = absl::StrCat("was killed by signal ", exited.signal);
  if (exited.start_failed) how = "could not be started";
  if (exited.stopped_by_agent) how = absl::StrCat("was stopped on request (", how, ")");
  std::string words = exited.fatal_message.empty() ? exited.error : exited.fatal_message;
  return words.empty() ? how : absl::StrCat(how, ": ", words);
}

// The letter of the state, for the process that the record means and no other that has got its number.
std::string ProcessState(const contract::Started& started) {
  std::string stat = ReadFile(absl::StrCat("/proc/", started.pid, "/stat")).value_or("");
  size_t end = stat.rfind(") ");
  bool same = end != std::string::npos && StartTicks(started.pid) == started.start_ticks;
  return same ? stat.substr(end + 2, 1) : "";
}

diagnosis::CollectivePosition Position(const contract::RingRecord& record, absl::Duration now) {
  diagnosis::CollectivePosition position = {.group = record.group,
                                            .number = static_cast<int64_t>(record.number),
                                            .operation = record.operation,
                                            .site = record.site,
                                            .count = record.count};
  if (record.detail[0] != '\0') absl::StrAppend(&position.site, " ", record.detail);
  switch (record.state) {
    case contract::RingState::kDone:
      position.state = "done";
      position.seconds = Since(record.done_nanoseconds, now);
      break;
    case contract::RingState::kFailed:
      position.state = "failed";
      position.seconds = Since(record.entered_nanoseconds, absl::Nanoseconds(record.done_nanoseconds));
      break;
    case contract::RingState::kEntered:
      position.state = "entered";
      position.seconds = Since(record.entered_nanoseconds, now);
      break;
  }
  return position;
}

void AddCollectives(const std::string& directory, absl::Duration now, diagnosis::RankView& view) {
  absl::StatusOr<std::vector<contract::RingRecord>> ring =
      contract::ReadRing(absl::StrCat(directory, "/", contract::kCollectivesFile));
  if (!ring.ok()) return;
  std::map<std::string, const contract::RingRecord*> newest;
  for (const contract::RingRecord& record : *ring) newest[record.group] = &record;
  for (const auto& [group, record] : newest) view.collectives.push_back(Position(*record, now));
}

}  // namespace

diagnosis::RankView LookAtRank(const std::string& directory, absl::Duration now) {
  diagnosis::RankView view;
  if (auto started = ReadRecord<contract::Started>(absl::StrCat(directory, "/", contract::kStartedFile))) {
    view.pid = started->pid;
    view.process = ProcessState(*started);
  }
  if (auto exited = ReadRecord<contract::Exited>(absl::StrCat(directory, "/", contract::kExitFile))) {
    view.exit = ExitText(*exited);
  }
  absl::StatusOr<contract::PhaseRecord> page =
      contract::ReadPhasePage(absl::StrCat(directory, "/", contract::kPhaseFile));
  if (page.ok()) {
    view.activity = contract::ActivityName(page->activity);
    view.phase = contract::PhaseName(page->phase);
    view.where = contract::PhaseText(page->phase);
    view.phase_seconds = Since(page->phase_nanoseconds, now);
    view.step = page->step;
    view.step_seconds = Since(page->step_nanoseconds, now);
    view.process_seconds = Since(page->started_nanoseconds, now);
  }
  AddCollectives(directory, now, view);
  return view;
}

absl::Duration BusyTime(const contract::PhaseRecord& record) {
  absl::Duration busy = absl::ZeroDuration();
  for (contract::Phase phase : {contract::Phase::kData, contract::Phase::kForward, contract::Phase::kBackward,
                                contract::Phase::kOptimizer}) {
    busy += absl::Nanoseconds(record.spent_nanoseconds[static_cast<size_t>(phase)]);
  }
  return busy;
}

}  // namespace llmctl::agent
