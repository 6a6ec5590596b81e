#include "worker/data/read/input_files.h"

#include <memory>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/status.h"
#include "worker/data/read/file_system.h"
#include "worker/data/read/parquet_reader.h"
#include "worker/data/read/record.h"

namespace llmctl::data {
namespace {

constexpr absl::string_view kKnownNames = ".txt, .jsonl, .json (also with .gz or .zst) or .parquet";

// Takes the suffix off the name, if it has it.
bool TakeSuffix(absl::string_view suffix, absl::string_view& name) {
  if (!absl::EndsWithIgnoreCase(name, suffix)) return false;
  name.remove_suffix(suffix.size());
  return true;
}

// False if the name tells nothing.
bool FormatOf(absl::string_view name, std::optional<InputFormat> forced, InputFile& file) {
  if (TakeSuffix(".gz", name)) file.compression = Compression::kGzip;
  if (TakeSuffix(".zst", name)) file.compression = Compression::kZstd;
  bool packed = file.compression != Compression::kNone;
  if (forced) {
    file.format = *forced;
    return !packed || file.format != InputFormat::kParquet;
  }
  if (TakeSuffix(".txt", name)) {
    file.format = InputFormat::kText;
  } else if (TakeSuffix(".jsonl", name) || TakeSuffix(".json", name)) {
    file.format = InputFormat::kJsonLines;
  } else if (!packed && TakeSuffix(".parquet", name)) {
    file.format = InputFormat::kParquet;
  } else {
    return false;
  }
  return true;
}

absl::Status WrongType(absl::string_view path) {
  bool packed = absl::EndsWith(path, ".xz") || absl::EndsWith(path, ".bz2") || absl::EndsWith(path, ".lz4");
  return absl::InvalidArgumentError(absl::StrCat("input ", path, ": expected a name that ends in ", kKnownNames,
                                                 packed ? "; unpack it first" : "; rename it or force its format"));
}

class Lister {
 public:
  Lister(const std::string& excluded, std::optional<InputFormat> forced) : excluded_(excluded), forced_(forced) {}

  absl::Status Add(const std::string& input) {
    LLM_ASSIGN_OR_RETURN(files_, FileSystemOf(input));
    absl::StatusOr<FileInfo> info = files_->Stat(input);
    if (info.ok()) return AddNamed(*info);
    if (!absl::IsNotFound(info.status())) return info.status();
    LLM_ASSIGN_OR_RETURN(std::vector<std::string> matches, files_->Glob(input));
    if (matches.empty()) {
      return absl::NotFoundError(absl::StrCat("input ", input, ": no such file or folder, and no file matches it"));
    }
    for (const std::string& match : matches) {
      LLM_ASSIGN_OR_RETURN(FileInfo found, files_->Stat(match));
      LLM_RETURN_IF_ERROR(found.is_folder ? AddFolder(match) : AddFound(found));
    }
    return absl::OkStatus();
  }

  InputList& list() { return list_; }

 private:
  absl::Status AddNamed(const FileInfo& info) {
    if (info.is_folder) return AddFolder(info.path);
    InputFile file{info.path, InputFormat::kText, info.bytes};
    if (!FormatOf(info.path, forced_, file)) return WrongType(info.path);
    return AddFile(std::move(file));
  }

  // A file that was found, rather than named: other types are passed over.
  absl::Status AddFound(const FileInfo& info) {
    InputFile file{info.path, InputFormat::kText, info.bytes};
    if (FormatOf(info.path, forced_, file)) return AddFile(std::move(file));
    list_.passed_over.push_back(info.path);
    return absl::OkStatus();
  }

  absl::Status AddFolder(const std::string& folder) {
    std::string excluded = excluded_.empty() ? "" : files_->Identity(excluded_);
    LLM_ASSIGN_OR_RETURN(std::vector<FileInfo> found, files_->List(folder, excluded));
    for (const FileInfo& info : found) LLM_RETURN_IF_ERROR(AddFound(info));
    return absl::OkStatus();
  }

  absl::Status AddFile(InputFile file) {
    if (!seen_.insert(files_->Identity(file.path)).second) return absl::OkStatus();
    list_.bytes += file.bytes;
    list_.files.push_back(std::move(file));
    return absl::OkStatus();
  }

  const std::string excluded_;
  const std::optional<InputFormat> forced_;
  std::unique_ptr<FileSystem> files_;
  std::set<std::string> seen_;
  InputList list_;
};

// Rows, each the first of a row group.
absl::StatusOr<std::vector<int64_t>> CutParquet(const InputFile& file, int64_t range_bytes) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<FileSystem> files, FileSystemOf(file.path));
  LLM_ASSIGN_OR_RETURN(std::vector<ParquetRowGroup> groups, ParquetRowGroups(*files, file));
  std::vector<int64_t> cuts;
  int64_t row = 0, bytes = 0;
  for (const ParquetRowGroup& group : groups) {
    if (bytes > 0 && bytes + group.bytes > range_bytes) {
      cuts.push_back(row);
      bytes = 0;
    }
    row += group.rows;
    bytes += group.bytes;
  }
  return cuts;
}

}  // namespace

absl::string_view FormatName(InputFormat format) {
  switch (format) {
    case InputFormat::kText: return "text";
    case InputFormat::kJsonLines: return "jsonl";
    case InputFormat::kParquet: return "parquet";
  }
  return "unknown";
}

absl::string_view CompressionName(Compression compression) {
  switch (compression) {
    case Compression::kNone: return "none";
    case Compression::kGzip: return "gzip";
    case Compression::kZstd: return "zstd";
  }
  return "unknown";
}

bool CanBeCut(const InputFile& file) {
  return file.compression == Compression::kNone && file.format != InputFormat::kText;
}

absl::StatusOr<InputList> ListInputs(const std::vector<std::string>& inputs, const std::string& excluded_folder,
                                     std::optional<InputFormat> forced_format) {
  Lister lister(excluded_folder, forced_format);
  for (const std::string& input : inputs) LLM_RETURN_IF_ERROR(lister.Add(input));
  if (lister.list().files.empty()) {
    return absl::NotFoundError(absl::StrCat("no file among the inputs has a name that ends in ", kKnownNames, " (",
                                            lister.list().passed_over.size(),
                                            " files of other types were passed over)"));
  }
  return std::move(lister.list());
}

absl::StatusOr<std::vector<InputRange>> CutInputs(const std::vector<InputFile>& files, int64_t range_bytes) {
  CHECK_GT(range_bytes, 0);
  std::vector<InputRange> ranges;
  for (size_t i = 0; i < files.size(); ++i) {
    const InputFile& file = files[i];
    std::vector<int64_t> cuts;
    if (file.format == InputFormat::kParquet) {
      LLM_ASSIGN_OR_RETURN(cuts, CutParquet(file, range_bytes));
    } else if (CanBeCut(file)) {
      for (int64_t cut = range_bytes; cut < file.bytes; cut += range_bytes) cuts.push_back(cut);
    }
    int64_t begin = 0;
    for (int64_t cut : cuts) ranges.push_back({static_cast<int>(i), std::exchange(begin, cut), cut});
    ranges.push_back({static_cast<int>(i), begin, kFileEnd});
  }
  return ranges;
}

}  // namespace llmctl::data
