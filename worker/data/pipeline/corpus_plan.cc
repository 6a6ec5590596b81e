#include "worker/data/pipeline/corpus_plan.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

#include "common/base/digest.h"
#include "common/base/status.h"
#include "common/json/strict_json.h"
#include "worker/data/spill/record_file.h"
#include "worker/data/pipeline/settings.h"
#include "worker/data/read/record.h"

namespace llmctl::data {
namespace {

using nlohmann::json;

std::optional<InputFormat> ForcedFormat(const std::string& format) {
  if (format == "text") return InputFormat::kText;
  if (format == "jsonl") return InputFormat::kJsonLines;
  if (format == "parquet") return InputFormat::kParquet;
  return std::nullopt;
}

absl::StatusOr<int64_t> ModifiedAt(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, absl::StrCat("look at ", path));
  return int64_t{info.st_mtim.tv_sec} * 1000000000 + info.st_mtim.tv_nsec;
}

absl::Status ListFiles(CorpusPlan& plan) {
  for (size_t source = 0; source < plan.config.sources.size(); ++source) {
    const contract::CorpusSourceConfig& config = plan.config.sources[source];
    absl::StatusOr<InputList> list = ListInputs(config.paths, plan.config.output, ForcedFormat(config.format));
    if (!list.ok()) return Annotate(list.status(), "source ", config.name);
    for (InputFile& file : list->files) {
      LLM_ASSIGN_OR_RETURN(int64_t modified_ns, ModifiedAt(file.path));
      plan.files.push_back({std::move(file), static_cast<int>(source), modified_ns});
    }
    plan.passed_over.insert(plan.passed_over.end(), list->passed_over.begin(), list->passed_over.end());
  }
  return absl::OkStatus();
}

// About 32 tasks and segments, within bounds.
void ChooseLimits(CorpusPlan& plan) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  PlanLimits& limits = plan.limits;
  if (limits.task_bytes == 0) limits.task_bytes = std::clamp(plan.bytes / 32, 4 * kMiB, 256 * kMiB);
  if (limits.segment_bytes == 0) limits.segment_bytes = std::clamp(plan.bytes / 32, 4 * kMiB, 64 * kMiB);
}

// Small files are put together, large ones have been cut.
absl::Status CutTasks(CorpusPlan& plan) {
  std::vector<InputFile> files;
  for (const PlannedFile& planned : plan.files) files.push_back(planned.file);
  LLM_ASSIGN_OR_RETURN(std::vector<InputRange> ranges, CutInputs(files, plan.limits.task_bytes));
  for (const InputRange& range : ranges) {
    bool whole = range.begin == 0 && range.end == kFileEnd;
    int64_t bytes = whole ? files[range.file].bytes : plan.limits.task_bytes;
    if (plan.tasks.empty() || plan.tasks.back().bytes + bytes > plan.limits.task_bytes) plan.tasks.emplace_back();
    plan.tasks.back().pieces.push_back(range);
    plan.tasks.back().bytes += bytes;
  }
  return absl::OkStatus();
}

// The model files that the cleaning stages read, as they are now.
absl::Status NoteModels(CorpusPlan& plan) {
  std::vector<std::string> paths;
  if (plan.config.language) paths.push_back(plan.config.language->model);
  if (plan.config.perplexity) {
    paths.push_back(plan.config.perplexity->tokenizer);
    for (const contract::PerplexityModelConfig& model : plan.config.perplexity->models) paths.push_back(model.arpa);
  }
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    LLM_ASSIGN_OR_RETURN(int64_t modified_ns, ModifiedAt(path));
    absl::StrAppend(&plan.models_text, path, " of ", modified_ns, "\n");
  }
  return absl::OkStatus();
}

// What the cleaning stages' result follows from.
std::string CleaningText(const CorpusPlan& plan) {
  contract::CorpusConfig config = plan.config;
  config.output.clear();
  config.memory.clear();
  config.threads = config.workers = 0;
  config.exact_dedup.reset();
  config.near_dedup.reset();
  config.length_balance.reset();
  config.mix.reset();
  config.tokenizer.clear();
  config.pack.reset();
  config.validation_fraction = 0;
  json files = json::array();
  for (const PlannedFile& planned : plan.files) {
    files.push_back({planned.file.path, planned.file.bytes, planned.modified_ns});
  }
  return absl::StrCat("cleaning 1\n", contract::EncodeCorpusConfig(config), JsonText(files, false), plan.models_text,
                      plan.limits.task_bytes, " ", plan.limits.segment_bytes);
}

void MakeDigests(CorpusPlan& plan) {
  plan.clean_digest = DigestOf(CleaningText(plan));
  std::string passes = plan.clean_digest;
  for (const ExactSettings& exact : ExactDedupSettings(plan.config.exact_dedup)) {
    absl::StrAppend(&passes, " ", TextUnitName(exact.unit), " of ", exact.bytes_min);
    plan.exact_digests.push_back(DigestOf(passes));
  }
  if (plan.config.near_dedup) {
    absl::StrAppend(&passes, " ", ClusterText(NearDedupSettings(*plan.config.near_dedup)));
    plan.near_digest = DigestOf(passes);
  }
  bool by_language = plan.config.mix && plan.config.mix->by == "language";
  plan.encode_digest = DigestOf(
      absl::StrCat(passes, by_language ? " by language" : "", " tokens of ", plan.tokenizer_digest));
}

json FileJson(const PlannedFile& planned) {
  return {{"path", planned.file.path},
          {"format", std::string(FormatName(planned.file.format))},
          {"compression", std::string(CompressionName(planned.file.compression))},
          {"bytes", planned.file.bytes},
          {"source", planned.source},
          {"modified_ns", planned.modified_ns}};
}

PlannedFile ReadFileJson(ObjectReader& reader, int sources) {
  PlannedFile planned;
  planned.file.path = reader.String("path");
  std::string format = reader.String("format");
  std::string compression = reader.String("compression");
  for (InputFormat known : {InputFormat::kText, InputFormat::kJsonLines, InputFormat::kParquet}) {
    if (format == FormatName(known)) planned.file.format = known;
  }
  for (Compression known : {Compression::kNone, Compression::kGzip, Compression::kZstd}) {
    if (compression == CompressionName(known)) planned.file.compression = known;
  }
  planned.file.bytes = reader.Integer("bytes", 0);
  planned.source = static_cast<int>(reader.Integer("source", 0, sources - 1));
  planned.modified_ns = reader.Integer("modified_ns", std::numeric_limits<int64_t>::min());
  reader.Finish();
  return planned;
}

absl::StatusOr<CleanTask> ReadTaskJson(ObjectReader& reader, int64_t files) {
  CleanTask task;
  task.bytes = reader.Integer("bytes", 0);
  for (const json& piece : reader.Raw("pieces")) {
    bool fits = piece.is_array() && piece.size() == 3 && piece[0].is_number_integer() &&
                piece[1].is_number_integer() && piece[2].is_number_integer() && piece[0].get<int64_t>() >= 0 &&
                piece[0].get<int64_t>() < files;
    if (!fits) return absl::InvalidArgumentError(absl::StrCat(reader.where(), ".pieces: expected [file, begin, end]"));
    task.pieces.push_back({.file = piece[0].get<int>(), .begin = piece[1].get<int64_t>(),
                           .end = piece[2].get<int64_t>()});
  }
  reader.Finish();
  return task;
}

}  // namespace

absl::StatusOr<CorpusPlan> MakeCorpusPlan(const contract::CorpusConfig& config, const PlanLimits& limits) {
  CorpusPlan plan;
  plan.config = config;
  plan.limits = limits;
  LLM_RETURN_IF_ERROR(ListFiles(plan));
  for (const PlannedFile& planned : plan.files) plan.bytes += planned.file.bytes;
  ChooseLimits(plan);
  LLM_RETURN_IF_ERROR(CutTasks(plan));
  LLM_RETURN_IF_ERROR(NoteModels(plan));
  LLM_ASSIGN_OR_RETURN(plan.tokenizer, MakeTokenizer(config.tokenizer));
  plan.tokenizer_digest = plan.tokenizer->digest();
  MakeDigests(plan);
  return plan;
}

std::string EncodeCorpusPlan(const CorpusPlan& plan) {
  json files = json::array();
  for (const PlannedFile& planned : plan.files) files.push_back(FileJson(planned));
  json tasks = json::array();
  for (const CleanTask& task : plan.tasks) {
    json pieces = json::array();
    for (const InputRange& piece : task.pieces) pieces.push_back({piece.file, piece.begin, piece.end});
    tasks.push_back({{"bytes", task.bytes}, {"pieces", std::move(pieces)}});
  }
  json out = {{"version", 1},
              {"config", json::parse(contract::EncodeCorpusConfig(plan.config))},
              {"files", std::move(files)},
              {"tasks", std::move(tasks)},
              {"tokenizer_digest", plan.tokenizer_digest},
              {"models", plan.models_text},
              {"passed_over", plan.passed_over},
              {"task_bytes", plan.limits.task_bytes},
              {"segment_bytes", plan.limits.segment_bytes}};
  return JsonText(out, /*indented=*/true) + "\n";
}

absl::StatusOr<CorpusPlan> DecodeCorpusPlan(absl::string_view text, absl::string_view what) {
  LLM_ASSIGN_OR_RETURN(json value, ParseStrictJson(text, what));
  JsonErrors errors;
  ObjectReader root(value, std::string(what), errors);
  CorpusPlan plan;
  root.Integer("version", 1, 1);
  LLM_ASSIGN_OR_RETURN(plan.config, contract::DecodeCorpusConfig(JsonText(root.Raw("config"), false)));
  for (ObjectReader& file : root.Objects("files")) {
    plan.files.push_back(ReadFileJson(file, static_cast<int>(plan.config.sources.size())));
  }
  for (const json& path : root.Raw("passed_over")) {
    if (path.is_string()) plan.passed_over.push_back(path.get<std::string>());
  }
  for (ObjectReader& task : root.Objects("tasks")) {
    LLM_ASSIGN_OR_RETURN(CleanTask read, ReadTaskJson(task, static_cast<int64_t>(plan.files.size())));
    plan.tasks.push_back(std::move(read));
  }
  for (const PlannedFile& planned : plan.files) plan.bytes += planned.file.bytes;
  plan.tokenizer_digest = root.String("tokenizer_digest");
  plan.models_text = root.String("models");
  plan.limits.task_bytes = root.Integer("task_bytes", 1);
  plan.limits.segment_bytes = root.Integer("segment_bytes", 1);
  root.Finish();
  LLM_RETURN_IF_ERROR(errors.status());
  MakeDigests(plan);
  return plan;
}

}  // namespace llmctl::data
