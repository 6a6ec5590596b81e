#include "worker/agent/evidence/bundle.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <numeric>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "common/diagnosis/rank_view.h"
#include "worker/agent/evidence/redact.h"
#include "worker/agent/evidence/stack_text.h"
#include "worker/agent/host/evidence_archive.h"
#include "worker/agent/host/kernel_log.h"
#include "worker/agent/host/rank_log.h"
#include "worker/agent/host/rank_look.h"
#include "worker/agent/host/shim_set.h"
#include "worker/contract/collective_ring.h"
#include "worker/contract/picture.h"
#include "worker/contract/shim_config.h"

namespace llmctl::agent {
namespace {

constexpr int64_t kLogBytes = 64 << 10;
constexpr size_t kCollectives = 64;

// Held open, since the agent moves it when the coordinator has heard of the end.
struct RankDirectory {
  UniqueFd folder;
  std::string path() const { return absl::StrCat("/proc/self/fd/", folder.get()); }
};

absl::StatusOr<RankDirectory> OpenRank(const BundleSource& source, int rank) {
  LLM_ASSIGN_OR_RETURN(std::string name, ShimDirectoryName(source.generation, rank));
  // Twice the first: it may have been moved between our looks.
  for (const char* parent : {"shims", "ended", "shims", "ended"}) {
    std::string path = absl::StrCat(source.state_dir, "/", parent, "/", name);
    UniqueFd folder(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (folder.valid()) return RankDirectory{std::move(folder)};
  }
  return absl::NotFoundError(absl::StrCat("nothing is kept of rank ", rank));
}

std::string CollectivesText(const std::string& directory) {
  absl::StatusOr<std::vector<contract::RingRecord>> ring =
      contract::ReadRing(absl::StrCat(directory, "/", contract::kCollectivesFile));
  if (!ring.ok()) return absl::StrCat("(", ring.status().message(), ")\n");
  std::string text;
  size_t begin = ring->size() > kCollectives ? ring->size() - kCollectives : 0;
  for (size_t i = begin; i < ring->size(); ++i) {
    const contract::RingRecord& r = (*ring)[i];
    const char* state = r.state == contract::RingState::kDone ? "done"
                        : r.state == contract::RingState::kFailed ? "failed" : "entered";
    std::string took = r.done_nanoseconds == 0
                           ? ""
                           : absl::StrFormat(" after %.3f ms", 1e-6 * (r.done_nanoseconds - r.entered_nanoseconds));
    absl::StrAppendFormat(&text, "%.6f %s #%d %s %s %s, %d elements of %d bytes: %s%s\n",
                          1e-9 * static_cast<double>(r.entered_nanoseconds), r.group, r.number, r.operation, r.site,
                          r.detail, r.count, r.element_bytes, state, took);
  }
  return text;
}

// NotFound: none was taken.
absl::StatusOr<contract::Picture> ReadPicture(const std::string& directory) {
  LLM_ASSIGN_OR_RETURN(std::string bytes, ReadFile(absl::StrCat(directory, "/", contract::kPictureFile)));
  return contract::DecodePicture(bytes);
}

std::string Stacks(const absl::StatusOr<contract::Picture>& picture) {
  if (absl::IsNotFound(picture.status())) return "";
  return picture.ok() ? StackText(*picture) : absl::StrCat("(", picture.status().message(), ")\n");
}

std::string LogEnd(const std::string& directory, const char* stream) {
  absl::StatusOr<LogPiece> piece = ReadRankLog(directory, stream, -kLogBytes, kLogBytes);
  return piece.ok() ? CleanUtf8(piece->data) : "";
}

// The configuration of the shim, for what of the trainer is in it.
contract::ShimConfig ReadConfig(const std::string& directory) {
  absl::StatusOr<std::string> json = ReadFile(absl::StrCat(directory, "/", contract::kShimConfigFile));
  absl::StatusOr<contract::ShimConfig> config =
      json.ok() ? contract::DecodeShimConfig(*json) : absl::StatusOr<contract::ShimConfig>(json.status());
  return config.value_or(contract::ShimConfig());
}

void AddRank(const BundleSource& source, int rank, const std::string& directory, absl::Duration now,
             std::vector<archive::File>& files) {
  std::string folder = absl::StrCat("rank-", rank, "/");
  auto add = [&](const char* name, std::string content) {
    if (!content.empty()) files.push_back({folder + name, std::move(content)});
  };
  absl::StatusOr<contract::Picture> picture = ReadPicture(directory);
  // Ages as they were when something was wrong.
  diagnosis::RankView view = LookAtRank(directory, picture.ok() ? absl::Nanoseconds(picture->nanoseconds) : now);
  view.rank = rank;
  view.node = source.node;
  add("view.json", diagnosis::EncodeRankView(view) + "\n");
  add("stacks.txt", Stacks(picture));
  add("collectives.txt", CollectivesText(directory));
  add("environment.txt", RedactedEnvironment(ReadConfig(directory).environment));
  add("trainer.json", ReadFile(absl::StrCat(directory, "/", contract::kTrainerConfigFile)).value_or(""));
  add("shim.log", ReadFile(absl::StrCat(directory, "/", contract::kShimLogFile)).value_or(""));
  add("stderr.log", LogEnd(directory, "stderr"));
  add("stdout.log", LogEnd(directory, "stdout"));
}

std::string HostJson(const BundleSource& source, const std::vector<int>& ranks, int world_size, absl::Time now) {
  nlohmann::ordered_json json = {{"job", source.generation.job.value()},
                                 {"attempt", source.generation.attempt},
                                 {"generation", source.generation.generation},
                                 {"node", source.node},
                                 {"ranks", ranks},
                                 {"world_size", world_size},
                                 {"time", absl::FormatTime(absl::RFC3339_sec, now, absl::UTCTimeZone())}};
  // A node may be called what is no text.
  return json.dump(2, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// The most that each of so many bytes may keep for all to fit: who has less keeps all.
size_t ShareOf(std::vector<size_t> sizes, size_t bytes_max) {
  std::sort(sizes.begin(), sizes.end());
  for (size_t i = 0; i < sizes.size(); ++i) {
    size_t share = bytes_max / (sizes.size() - i);
    if (sizes[i] > share) return share;
    bytes_max -= sizes[i];
  }
  return std::numeric_limits<size_t>::max();
}

// Each log keeps its end. Of the rest, which is small but for the stacks of many threads, the beginning is kept.
void FitInto(size_t bytes_max, std::vector<archive::File>& files) {
  auto is_log = [](const archive::File& file) { return file.name.ends_with(".log"); };
  std::vector<size_t> logs, others;
  for (const archive::File& file : files) (is_log(file) ? logs : others).push_back(file.content.size());
  size_t all_logs = std::accumulate(logs.begin(), logs.end(), size_t{0});
  size_t all_others = std::accumulate(others.begin(), others.end(), size_t{0});
  if (all_logs + all_others <= bytes_max) return;
  size_t of_log = ShareOf(logs, bytes_max - std::min(all_others, bytes_max));
  size_t of_other = ShareOf(others, bytes_max);
  for (archive::File& file : files) {
    std::string& content = file.content;
    if (is_log(file) && content.size() > of_log) content.erase(0, content.size() - of_log);
    if (!is_log(file) && all_others > bytes_max && content.size() > of_other) content.resize(of_other);
  }
}

}  // namespace

absl::StatusOr<std::vector<archive::File>> MakeBundle(const BundleSource& source, const Instant& now,
                                                      size_t bytes_max) {
  std::vector<archive::File> files;
  std::vector<int> ranks;
  int world_size = 0;
  for (int rank : source.ranks) {
    absl::StatusOr<RankDirectory> directory = OpenRank(source, rank);
    if (!directory.ok()) continue;
    ranks.push_back(rank);
    world_size = std::max(world_size, ReadConfig(directory->path()).assignment.world_size);
    AddRank(source, rank, directory->path(), now.monotonic, files);
  }
  if (ranks.empty()) return absl::NotFoundError("no rank of the gang has left a directory");
  files.insert(files.begin(), {"host.json", HostJson(source, ranks, world_size, now.wall)});
  files.push_back({"kernel.log", KernelLogTail()});
  FitInto(bytes_max, files);
  return files;
}

absl::Status StoreBundle(const BundleSource& source, const std::vector<archive::File>& files, absl::Time now) {
  std::string folder = absl::StrCat(source.state_dir, "/evidence");
  LLM_RETURN_IF_ERROR(MakeDirectories(folder));
  LLM_RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(folder, "/", EvidenceFileName(source.generation)),
                                          archive::WriteTar(files, now)));
  std::error_code error;
  std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> kept;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".tar") kept.emplace_back(entry.last_write_time(error), entry.path());
  }
  std::sort(kept.begin(), kept.end());
  for (size_t i = 0; i + kEvidenceMax < kept.size(); ++i) std::filesystem::remove(kept[i].second, error);
  return absl::OkStatus();
}

}  // namespace llmctl::agent
