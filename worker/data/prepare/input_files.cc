#include "worker/data/prepare/input_files.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/base/status.h"

namespace llmctl::data {
namespace {

namespace fs = std::filesystem;

// False if it is neither.
bool FormatOf(const std::string& path, InputFormat& format) {
  if (absl::EndsWithIgnoreCase(path, ".txt")) {
    format = InputFormat::kText;
    return true;
  }
  format = InputFormat::kJsonLines;
  return absl::EndsWithIgnoreCase(path, ".jsonl");
}

absl::Status WrongType(const std::string& path) {
  bool packed = absl::EndsWith(path, ".gz") || absl::EndsWith(path, ".zst") || absl::EndsWith(path, ".xz");
  return absl::InvalidArgumentError(absl::StrCat("input ", path, ": expected a .txt or .jsonl file",
                                                 packed ? "; unpack it first" : "; rename it if it is one"));
}

class Lister {
 public:
  explicit Lister(const std::string& excluded) {
    std::error_code ignored;
    excluded_ = fs::weakly_canonical(excluded, ignored).string();
  }

  // A file that was found, rather than named: other types are passed over.
  absl::Status AddFound(const std::string& path) {
    InputFormat format;
    if (FormatOf(path, format)) return AddFile(path, format);
    list_.passed_over.push_back(path);
    return absl::OkStatus();
  }

  absl::Status AddFile(const std::string& path, InputFormat format) {
    std::error_code error;
    int64_t bytes = fs::file_size(path, error);
    if (error) return ErrnoStatus(error.value(), absl::StrCat("input ", path));
    if (!seen_.insert(fs::weakly_canonical(path, error).string()).second) return absl::OkStatus();
    list_.files.push_back({path, format, bytes});
    list_.bytes += bytes;
    return absl::OkStatus();
  }

  absl::Status AddFolder(const std::string& folder) {
    std::error_code error;
    std::vector<std::string> paths;
    fs::recursive_directory_iterator it(folder, error), end;
    for (; !error && it != end; it.increment(error)) {
      if (it->is_directory() && IsExcluded(it->path())) {
        it.disable_recursion_pending();
      } else if (it->is_regular_file()) {
        paths.push_back(it->path().string());
      }
    }
    if (error) return ErrnoStatus(error.value(), absl::StrCat("search folder ", folder));
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) LLM_RETURN_IF_ERROR(AddFound(path));
    return absl::OkStatus();
  }

  absl::Status AddPath(const std::string& path, bool named) {
    std::error_code error;
    if (fs::is_directory(path, error)) return AddFolder(path);
    InputFormat format;
    if (!named) return AddFound(path);
    if (!FormatOf(path, format)) return WrongType(path);
    return AddFile(path, format);
  }

  InputList& list() { return list_; }

 private:
  bool IsExcluded(const fs::path& path) const {
    std::error_code ignored;
    return !excluded_.empty() && fs::weakly_canonical(path, ignored).string() == excluded_;
  }

  std::string excluded_;
  std::set<std::string> seen_;
  InputList list_;
};

std::vector<std::string> Glob(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return paths;
}

}  // namespace

absl::StatusOr<InputList> ListInputs(const std::vector<std::string>& inputs, const std::string& excluded_directory) {
  Lister lister(excluded_directory);
  for (const std::string& input : inputs) {
    size_t before = lister.list().files.size() + lister.list().passed_over.size();
    std::error_code error;
    if (fs::exists(input, error)) {
      LLM_RETURN_IF_ERROR(lister.AddPath(input, /*named=*/true));
      continue;
    }
    for (const std::string& path : Glob(input)) LLM_RETURN_IF_ERROR(lister.AddPath(path, /*named=*/false));
    if (lister.list().files.size() + lister.list().passed_over.size() == before && Glob(input).empty()) {
      return absl::NotFoundError(absl::StrCat("input ", input, ": no such file or folder, and no file matches it"));
    }
  }
  if (lister.list().files.empty()) {
    return absl::NotFoundError(absl::StrCat("no .txt or .jsonl file among the inputs (",
                                            lister.list().passed_over.size(),
                                            " files of other types were passed over)"));
  }
  return std::move(lister.list());
}

}  // namespace llmctl::data
