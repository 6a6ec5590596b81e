// Which files an input means, and what is in them.
//
// The format is told by the name: .txt, .jsonl, .json (JSON lines too) and .parquet, the first three also with .gz or
// .zst after it. A forced format takes every file that is named or found, whatever its name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::data {

enum class InputFormat { kText, kJsonLines, kParquet };
enum class Compression { kNone, kGzip, kZstd };

absl::string_view FormatName(InputFormat format);  // text, jsonl, parquet
absl::string_view CompressionName(Compression compression);

struct InputFile {
  std::string path;
  InputFormat format = InputFormat::kText;
  int64_t bytes = 0;  // as it lies there
  Compression compression = Compression::kNone;
};

struct InputList {
  std::vector<InputFile> files;
  int64_t bytes = 0;
  std::vector<std::string> passed_over;  // found in folders or by globs, but of no known format
};

// Files, folders (searched in depth, links not followed) and globs, in the order given; what a folder or glob
// gives is sorted, and a file that is named twice is read once. `excluded_folder`, which need not exist, is not
// searched: an output folder inside its input would feed on itself. NotFound when one gives nothing;
// InvalidArgument for a file of another type that is named outright.
absl::StatusOr<InputList> ListInputs(const std::vector<std::string>& inputs, const std::string& excluded_folder,
                                     std::optional<InputFormat> forced_format = std::nullopt);

// Whether a file can be read in ranges.
bool CanBeCut(const InputFile& file);

// A part of a file that one task reads: for JSON lines that are not compressed the lines that begin in these bytes,
// for Parquet these rows, for any other file all of it.
struct InputRange {
  int file = 0;  // index in the list
  int64_t begin = 0;
  int64_t end = 0;  // kFileEnd (record.h) when it is the last
};

// Cuts the files into ranges of about `range_bytes` of what lies on disk, in order. The cuts depend on the sizes of
// the files and on `range_bytes` only (for Parquet, on its row groups too).
absl::StatusOr<std::vector<InputRange>> CutInputs(const std::vector<InputFile>& files, int64_t range_bytes);

}  // namespace llmctl::data
