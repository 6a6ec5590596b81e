#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "client/command/evidence.h"
#include "client/command/verbs.h"
#include "client/output/json_view.h"
#include "client/output/table.h"
#include "client/output/yaml_text.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/diagnosis/verdict.h"

namespace llmctl::client {
namespace {

// What is found out about an attempt.
struct Findings {
  std::vector<v1::JobEvent> events;  // those that say what went wrong
  Evidence evidence;
  std::vector<diagnosis::RankView> views;
  diagnosis::Verdict verdict;
};

absl::StatusOr<std::vector<v1::JobEvent>> EventsOf(const std::string& job, int64_t attempt, Session& session) {
  v1::ListEventsRequest request;
  request.set_id(job);
  std::vector<v1::JobEvent> telling;
  do {
    LLM_ASSIGN_OR_RETURN(v1::ListEventsReply page, session.cluster.ListEvents(request));
    for (const v1::JobEvent& event : page.events()) {
      bool tells = event.kind() == "failure" || event.kind() == "rank-exited" || event.kind() == "straggler";
      if (tells && event.attempt() == attempt) telling.push_back(event);
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return telling;
}

// The newest attempt of which a host has evidence, or the one asked for.
absl::StatusOr<Evidence> FindEvidence(const v1::Job& job, int64_t asked, Session& session) {
  if (asked > 0) return FetchEvidence(job, asked, session.cluster);
  absl::Status newest_error;
  for (int64_t attempt = job.attempt(); attempt > 0; --attempt) {
    absl::StatusOr<Evidence> evidence = FetchEvidence(job, attempt, session.cluster);
    if (evidence.ok()) return evidence;
    if (newest_error.ok()) newest_error = evidence.status();
    if (!absl::IsNotFound(evidence.status())) break;
  }
  if (newest_error.ok()) return absl::NotFoundError(absl::StrCat("job ", job.id(), " has had no attempt"));
  return newest_error;
}

absl::Status SaveArchives(const Evidence& evidence, const std::string& job, const std::string& folder,
                          Session& session) {
  LLM_RETURN_IF_ERROR(MakeDirectories(folder));
  for (const HostEvidence& host : evidence.hosts) {
    std::string path = absl::StrCat(folder, "/", job, "-a", evidence.attempt, "-", host.node, ".tar");
    LLM_RETURN_IF_ERROR(WriteFileAtomically(path, host.archive));
    session.err << "saved " << path << "\n";
  }
  return absl::OkStatus();
}

// As the coordinator knew it at last: a victim of the failure may have been heard of before its cause.
std::string CauseOf(const v1::Job& job, const Findings& findings) {
  std::string cause = job.reason();
  for (const v1::JobEvent& event : findings.events) {
    if (event.kind() != "straggler") cause = event.text();
  }
  return cause;
}

nlohmann::ordered_json ToJson(const v1::Job& job, const Findings& findings) {
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  for (const v1::JobEvent& event : findings.events) events.push_back(client::ToJson(event));
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (const diagnosis::RankView& view : findings.views) {
    nlohmann::ordered_json rank = nlohmann::ordered_json::parse(diagnosis::EncodeRankView(view));
    const HostEvidence* host = findings.evidence.Of(view.rank);
    rank["stacks"] = host == nullptr ? "" : host->File(absl::StrCat("rank-", view.rank, "/stacks.txt"));
    ranks.push_back(std::move(rank));
  }
  return {{"id", job.id()},
          {"attempt", findings.evidence.attempt},
          {"cause", CauseOf(job, findings)},
          {"verdict", findings.verdict.text},
          {"suspects", findings.verdict.suspects},
          {"events", std::move(events)},
          {"ranks", std::move(ranks)},
          {"missing", findings.evidence.missing}};
}

std::string CollectiveCell(const diagnosis::RankView& view) {
  if (view.collectives.empty()) return "";
  const diagnosis::CollectivePosition& last = view.collectives.front();
  return absl::StrCat(last.state, " ", diagnosis::CollectiveText(last));
}

void PrintTable(const Findings& findings, Session& session) {
  Table table({"RANK", "NODE", "STEP", "LAST SEEN", "FOR", "LAST COLLECTIVE", "END"});
  for (const diagnosis::RankView& view : findings.views) {
    table.AddRow({absl::StrCat(view.rank), view.node, absl::StrCat(view.step), view.where,
                  view.where.empty() ? "" : absl::StrFormat("%.1fs", view.phase_seconds), CollectiveCell(view),
                  view.exit});
  }
  session.out << table.ToText();
}

void PrintStacks(const Findings& findings, bool all, Session& session) {
  for (const diagnosis::RankView& view : findings.views) {
    const HostEvidence* host = findings.evidence.Of(view.rank);
    std::string stacks = host == nullptr ? "" : host->File(absl::StrCat("rank-", view.rank, "/stacks.txt"));
    session.out << "\nrank " << view.rank << " on " << view.node << ": ";
    if (stacks.empty()) {
      session.out << "no picture was taken before it ended\n";
    } else {
      session.out << (all ? stacks : MainStack(stacks));
    }
  }
}

void Print(const v1::Job& job, const Findings& findings, const DiagnoseOptions& options, Session& session) {
  session.out << "job " << job.id() << " (" << job.name() << "), attempt " << findings.evidence.attempt << "\n";
  for (const v1::JobEvent& event : findings.events) session.out << event.kind() << ": " << event.text() << "\n";
  session.out << "ranks: " << findings.verdict.text << "\n\n";
  PrintTable(findings, session);
  for (const std::string& missing : findings.evidence.missing) session.out << "missing: " << missing << "\n";
  PrintStacks(findings, options.stacks, session);
}

}  // namespace

absl::StatusOr<ExitCode> Diagnose(const DiagnoseOptions& options, Session& session) {
  v1::GetJobRequest request;
  request.set_id(options.job);
  LLM_ASSIGN_OR_RETURN(v1::Job job, session.cluster.GetJob(request));
  Findings findings;
  LLM_ASSIGN_OR_RETURN(findings.evidence, FindEvidence(job, options.attempt, session));
  LLM_ASSIGN_OR_RETURN(findings.events, EventsOf(job.id(), findings.evidence.attempt, session));
  findings.views = findings.evidence.Views();
  findings.verdict = diagnosis::FindCulprit(findings.views, findings.evidence.world_size);
  if (!options.save.empty()) LLM_RETURN_IF_ERROR(SaveArchives(findings.evidence, job.id(), options.save, session));
  if (session.format == Format::kJson) {
    session.out << ToJson(job, findings).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
                << "\n";
  } else if (session.format == Format::kYaml) {
    session.out << ToYaml(ToJson(job, findings));
  } else {
    Print(job, findings, options, session);
  }
  return ExitCode::kOk;
}

}  // namespace llmctl::client
