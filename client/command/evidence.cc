#include "client/command/evidence.h"

#include <algorithm>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/base/status.h"

namespace llmctl::client {
namespace {

// An archive is at most some megabytes; a host that sends for ever is not listened to for ever.
constexpr size_t kArchiveBytesMax = 64 << 20;

absl::StatusOr<std::string> FetchArchive(const std::string& job, int64_t attempt, int rank, Cluster& cluster) {
  v1::ReadLogRequest request;
  request.set_id(job);
  request.set_attempt(attempt);
  request.set_rank(rank);
  request.set_stream("evidence");
  std::string archive;
  while (true) {
    LLM_ASSIGN_OR_RETURN(v1::ReadLogReply reply, cluster.ReadLogOnce(request));
    archive += reply.data();
    if (reply.end() || reply.next_offset() <= request.offset()) return archive;
    if (archive.size() > kArchiveBytesMax) return absl::DataLossError("the host's archive does not end");
    request.set_offset(reply.next_offset());
  }
}

}  // namespace

std::string HostEvidence::File(const std::string& name) const {
  auto it = files.find(name);
  return it == files.end() ? "" : it->second;
}

std::vector<diagnosis::RankView> Evidence::Views() const {
  std::vector<diagnosis::RankView> views;
  for (const HostEvidence& host : hosts) {
    for (int rank : host.ranks) {
      auto view = diagnosis::DecodeRankView(host.File(absl::StrCat("rank-", rank, "/view.json")));
      if (view.ok()) views.push_back(*std::move(view));
    }
  }
  std::sort(views.begin(), views.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  return views;
}

const HostEvidence* Evidence::Of(int rank) const {
  for (const HostEvidence& host : hosts) {
    if (std::find(host.ranks.begin(), host.ranks.end(), rank) != host.ranks.end()) return &host;
  }
  return nullptr;
}

absl::StatusOr<HostEvidence> ReadHostEvidence(std::string archive) {
  LLM_ASSIGN_OR_RETURN(std::vector<archive::File> files, archive::ReadTar(archive));
  HostEvidence host;
  for (archive::File& file : files) host.files[file.name] = std::move(file.content);
  nlohmann::json json = nlohmann::json::parse(host.File("host.json"), nullptr, /*allow_exceptions=*/false);
  bool whole = json.is_object() && json.contains("node") && json["node"].is_string() && json.contains("world_size") &&
               json["world_size"].is_number_integer() && json.contains("ranks") && json["ranks"].is_array();
  if (!whole) return absl::DataLossError("an archive of evidence without a host.json that can be read");
  host.node = json["node"].get<std::string>();
  host.world_size = json["world_size"].get<int>();
  for (const nlohmann::json& rank : json["ranks"]) {
    if (rank.is_number_integer()) host.ranks.push_back(rank.get<int>());
  }
  host.archive = std::move(archive);
  return host;
}

absl::StatusOr<Evidence> FetchEvidence(const v1::Job& job, int64_t attempt, Cluster& cluster) {
  Evidence evidence = {.attempt = attempt};
  std::set<int> known;
  // How many ranks the attempt had, its archives tell; until one has come, the newest attempt is as good a guess.
  int guess = std::max(1, job.ranks_size());
  absl::Status first_error;
  for (int rank = 0; rank < (evidence.world_size > 0 ? evidence.world_size : guess); ++rank) {
    if (known.contains(rank)) continue;
    absl::StatusOr<std::string> archive = FetchArchive(job.id(), attempt, rank, cluster);
    absl::StatusOr<HostEvidence> host =
        archive.ok() ? ReadHostEvidence(*std::move(archive)) : absl::StatusOr<HostEvidence>(archive.status());
    if (!host.ok()) {
      if (first_error.ok()) first_error = host.status();
      evidence.missing.push_back(absl::StrCat("rank ", rank, ": ", host.status().message()));
      continue;
    }
    evidence.world_size = std::max(evidence.world_size, host->world_size);
    known.insert(host->ranks.begin(), host->ranks.end());
    evidence.hosts.push_back(*std::move(host));
  }
  if (evidence.hosts.empty()) return first_error;
  return evidence;
}

std::string MainStack(const std::string& stacks) {
  size_t begin = stacks.find("thread ");
  if (begin == std::string::npos) return stacks;
  size_t end = stacks.find("\n\n", begin);
  return stacks.substr(begin, end == std::string::npos ? end : end + 1 - begin);
}

}  // namespace llmctl::client
