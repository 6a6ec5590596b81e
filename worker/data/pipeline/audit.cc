#include "worker/data/pipeline/audit.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "common/json/strict_json.h"
#include "worker/data/pipeline/block_file.h"
#include "worker/data/pipeline/encode_stage.h"

namespace llmctl::data {

absl::StatusOr<Audit> Audit::Open(const Workspace& workspace) {
  Audit audit(workspace);
  LLM_ASSIGN_OR_RETURN(audit.segments_, workspace.Segments());
  const CorpusPlan& plan = workspace.plan();
  std::map<int64_t, int64_t> lines;  // of the file so far
  size_t piece = 0;
  int task = -1;
  for (const Segment& segment : audit.segments_) {
    if (segment.task != task) piece = 0;
    task = segment.task;
    LLM_ASSIGN_OR_RETURN(SegmentFooter footer, workspace.ReadFooter(segment));
    for (int64_t piece_lines : footer.piece_lines) {
      const InputRange& input = plan.tasks[task].pieces[piece++];
      if (input.begin > 0) audit.lines_before_[task] = lines[input.file];
      lines[input.file] += piece_lines;
    }
  }
  return audit;
}

absl::Status Audit::ForEach(size_t segment, Take take) const {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<BlockFileReader> file,
                       BlockFileReader::Open(workspace_->files(), workspace_->VerdictsPath(segments_[segment]),
                                             workspace_->clean_digest()));
  absl::string_view record;
  VerdictRecord verdict;
  uint64_t kept = 0;
  while (true) {
    LLM_ASSIGN_OR_RETURN(bool more, file->Next(record));
    if (!more) return absl::OkStatus();
    LLM_RETURN_IF_ERROR(DecodeVerdict(record, verdict));
    LLM_ASSIGN_OR_RETURN(bool go_on, take(verdict, kept));
    if (!go_on) return absl::OkStatus();
    if (verdict.outcome.kept()) ++kept;
  }
}

absl::StatusOr<std::map<uint64_t, Loss>> Audit::LossesOf(size_t segment) const {
  LLM_ASSIGN_OR_RETURN(std::vector<LossRecord> records, ReadLosses(*workspace_, segments_[segment]));
  std::map<uint64_t, Loss> out;
  for (const LossRecord& record : records) out.emplace(record.index, record.loss);
  return out;
}

absl::StatusOr<std::pair<size_t, uint64_t>> Audit::DocumentOf(int pass, uint64_t number) const {
  uint64_t left = number;
  for (size_t segment = 0; segment < segments_.size(); ++segment) {
    LLM_ASSIGN_OR_RETURN(auto losses, LossesOf(segment));
    std::erase_if(losses, [&](const auto& entry) { return entry.second.pass >= pass; });
    uint64_t came = segments_[segment].documents - losses.size();
    if (left >= came) {
      left -= came;
      continue;
    }
    uint64_t index = left;
    for (const auto& [lost, loss] : losses) {
      if (lost <= index) ++index;
    }
    return std::make_pair(segment, index);
  }
  return absl::DataLossError("the audit names a document that there is not");
}

int64_t Audit::LineInFile(size_t segment, const DocumentPlace& place) const {
  auto before = lines_before_.find(segments_[segment].task);
  return place.line + (before == lines_before_.end() ? 0 : before->second);
}

std::string Audit::PlaceName(size_t segment, const DocumentPlace& place) const {
  const std::string& path = workspace_->plan().files[place.file].file.path;
  return absl::StrCat(path, ":", LineInFile(segment, place));
}

absl::Status WriteRejects(const Workspace& workspace, const std::string& path) {
  LLM_ASSIGN_OR_RETURN(Audit audit, Audit::Open(workspace));
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<SpillWriter> out, workspace.files().Create(path));
  for (size_t segment = 0; segment < audit.segments().size(); ++segment) {
    LLM_RETURN_IF_ERROR(audit.ForEach(segment, [&](const VerdictRecord& verdict, uint64_t) -> absl::StatusOr<bool> {
      if (!verdict.fault) return true;
      nlohmann::json line = {{"file", workspace.plan().files[verdict.place.file].file.path},
                             {"line", audit.LineInFile(segment, verdict.place)},
                             {"byte", verdict.place.byte},
                             {"reason", verdict.outcome.reason}};
      if (!verdict.detail.empty()) line["detail"] = std::string(verdict.detail);
      LLM_RETURN_IF_ERROR(out->Append(JsonText(line, /*indented=*/false) + "\n"));
      return true;
    }));
  }
  return out->Commit();
}

}  // namespace llmctl::data
