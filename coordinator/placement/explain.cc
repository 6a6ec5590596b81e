#include "coordinator/placement/explain.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "coordinator/placement/fit.h"

namespace llmctl::placement {
namespace {

// A reason is one line of a table: hosts beyond these are counted, not named.
constexpr size_t kHostsNamedMax = 4;

std::string Count(int n, const char* noun) { return absl::StrCat(n, " ", noun, n == 1 ? "" : "s"); }

// "node-b: taken by j-3"
std::string DescribeShortage(const Host& host, int per_worker) {
  size_t devices = host.free_devices.size() + host.taken.size();
  if (static_cast<int>(devices) < per_worker) {
    return absl::StrCat(host.node.value(), ": has only ", Count(static_cast<int>(devices), "device"));
  }
  std::set<std::string> holders;
  for (const auto& [device, job] : host.taken) holders.insert(job.value());
  return absl::StrCat(host.node.value(), ": ",
                      host.free_devices.empty() ? "" : absl::StrCat(host.free_devices.size(), " free, the others "),
                      "taken by ", absl::StrJoin(holders, ", "));
}

std::string JoinCapped(const std::vector<std::string>& parts) {
  size_t named = std::min(parts.size(), kHostsNamedMax);
  std::string text = absl::StrJoin(parts.begin(), parts.begin() + named, "; ");
  if (parts.size() > named) absl::StrAppend(&text, "; and ", parts.size() - named, " more");
  return text;
}

std::string DescribeUnreachable(const std::vector<NodeId>& unreachable) {
  if (unreachable.empty()) return "";
  std::vector<std::string> names;
  for (const NodeId& node : unreachable) names.push_back(node.value());
  size_t named = std::min(names.size(), kHostsNamedMax);
  std::string text = absl::StrCat("; without a link: ", absl::StrJoin(names.begin(), names.begin() + named, ", "));
  if (names.size() > named) absl::StrAppend(&text, " and ", names.size() - named, " more");
  return text;
}

// Those that cannot be used at all.
std::string DescribeUnusable(const Situation& situation) {
  std::string text = DescribeUnreachable(situation.unreachable);
  if (situation.closed.empty()) return text;
  std::vector<std::string> parts;
  for (const ClosedHost& host : situation.closed) parts.push_back(absl::StrCat(host.node.value(), " (", host.why, ")"));
  return absl::StrCat(text, "; taking no ranks: ", JoinCapped(parts));
}

std::string ExplainLayout(const JobRequirements& r) {
  std::string range = r.workers_max > r.workers_min ? absl::StrCat(r.workers_min, " to ", r.workers_max)
                                                    : absl::StrCat(r.workers_min);
  std::string wanted = r.data_parallel != 0 ? absl::StrCat("parallelism.data is ", r.data_parallel, " and ") : "";
  return absl::StrCat("can never run: ", range, " workers with ", Count(r.devices_per_worker, "device"), " each, but ",
                      wanted, "globalBatchSize ", r.global_batch_size, " allows at most ", r.global_batch_size,
                      " ranks; change resources, parallelism.data or globalBatchSize");
}

}  // namespace

std::string ExplainUnplaced(const Situation& situation, const JobRequirements& r) {
  std::vector<int> counts = WorkerCounts(r);
  if (counts.empty()) return ExplainLayout(r);
  int workers = *std::min_element(counts.begin(), counts.end());
  std::string needs = absl::StrCat("needs ", Count(workers, "worker"), " with ",
                                   Count(r.devices_per_worker, "free device"), workers == 1 ? "" : " each");
  if (situation.hosts.empty()) {
    if (!situation.closed.empty()) {
      return absl::StrCat(needs, "; no connected host takes ranks", DescribeUnusable(situation),
                          "; see `llmctl nodes uncordon`");
    }
    return absl::StrCat(needs, "; no host is connected", DescribeUnusable(situation), "; start llm-worker on one");
  }
  int with_room = 0;
  std::vector<std::string> shortages;
  std::set<std::string> flavors;
  for (const Host& host : situation.hosts) {
    int room = static_cast<int>(host.free_devices.size()) / r.devices_per_worker;
    if (room > 0) {
      ++with_room;
      flavors.insert(host.flavor);
    } else {
      shortages.push_back(DescribeShortage(host, r.devices_per_worker));
    }
  }
  std::string text = absl::StrCat(needs, "; ", with_room, " of ",
                                  Count(static_cast<int>(situation.hosts.size()), "connected host"),
                                  with_room == 1 ? " has" : " have", " room");
  if (!shortages.empty()) absl::StrAppend(&text, " (", JoinCapped(shortages), ")");
  if (flavors.size() > 1) absl::StrAppend(&text, ", and those differ in trainer build or kind of device");
  return absl::StrCat(text, DescribeUnusable(situation));
}

}  // namespace llmctl::placement
