// What reading gives: chunks of a file, and the documents and rejects in a chunk.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "worker/data/normalize/repairs.h"
#include "worker/data/read/input_files.h"
#include "worker/data/read/string_arena.h"

namespace llmctl::data {

inline constexpr int64_t kFileEnd = std::numeric_limits<int64_t>::max();

// A place in the input, for people. `byte` counts from 0, in the decompressed bytes; `line` from 1. In Parquet the
// byte is the row, and the line the row plus one.
struct Place {
  int file = 0;  // index of the input file
  int64_t line = 1;
  int64_t byte = 0;
  bool operator==(const Place&) const = default;
};

// A place at which reading can go on: the end of a chunk. A compressed file is decompressed from `frame_offset` on,
// where the gzip member or zstd frame begins in which the place lies, and what comes before the place is skipped.
// The last chunk of a file or range ends at byte kFileEnd.
struct Position {
  int64_t byte = 0;
  int64_t line = 1;          // of a range: counted from its first, so that line - 1 at its end is how many it has
  int64_t frame_offset = 0;  // in the file
  int64_t frame_byte = 0;    // of the decompressed bytes
  int part = 0;              // of a text document that is split, the next
  bool operator==(const Position&) const = default;
};

// Why a record or file gave no document, or not all of it. Names are stable: they stand in manifests and reject files.
enum class Reason {
  kInvalidUtf8,    // only under the policy to reject
  kLoneSurrogate,  // likewise
  kInvalidJson,
  kTrailingContent,  // more than one value on a line
  kNotAnObject,
  kFieldMissing,
  kFieldRepeated,
  kFieldNull,
  kFieldNotAString,
  kEmpty,            // no text but white space
  kLineTooLong,      // a line of JSON that cannot be taken apart within the memory allowed
  kDocumentTooLong,  // only under the policy to reject
  kUtf16File,
  kCompressedFile,  // under a name that says otherwise
  kTruncatedFile,   // compressed data ends early; what came before was read
  kCorruptFile,     // compressed data or Parquet that does not decode; what came before was read
  kWindowTooLarge,  // a zstd frame that needs more memory than it may
};
absl::string_view ReasonName(Reason reason);

// Whether part of a file could not be read: a run that met one must not report success unless it was told to.
bool IsDamage(Reason reason);

struct Reject {
  Place place;
  Reason reason = Reason::kInvalidJson;
  std::string detail;
};

// Rows of a Parquet file: their text and id columns. The views point into `arena`.
struct RowBatch {
  enum class Kind : uint8_t { kString, kNull, kMissingParent };
  struct Row {
    Kind kind = Kind::kString;
    absl::string_view text;
    absl::string_view id;
  };
  std::vector<Row> rows;
  StringArena arena;
};

// A piece of a file that a thread can work on without the others: whole lines, one text document or a part of one
// that is too long, or rows.
struct Chunk {
  int file = 0;
  InputFormat format = InputFormat::kText;
  Position start;     // where the chunk before ends
  Position end;       // reading on from here gives the chunks that follow
  Place place;        // of the first of `bytes`
  std::string bytes;  // with JsonLineParser::kPadding bytes of capacity behind them
  std::unique_ptr<RowBatch> rows;
  std::vector<Reject> rejects;       // records before `bytes` that the reader itself refused
  std::vector<Reject> last_rejects;  // damage after `bytes`
  int part = 0;                      // of a text document that was split
  Repairs repairs;                   // what the reader itself did
  int64_t file_bytes = 0;            // of the file as it lies there, read since the chunk before
};

struct ParsedDocument {
  Place place;
  int part = 0;            // of a document that was split, 0 the first
  absl::string_view id;    // as it stands in the record; empty: none
  absl::string_view text;  // valid UTF-8 with something in it, not yet normalised
};

// What is in a chunk. The views hold until the object is cleared or gone.
struct ParsedChunk {
  std::vector<ParsedDocument> documents;  // in input order
  std::vector<Reject> rejects;            // in input order
  Repairs repairs;
  int64_t records = 0;  // lines that are not blank, text documents, rows
  int64_t blank_lines = 0;
  int64_t file_bytes = 0;
  StringArena strings;
  std::unique_ptr<RowBatch> rows;

  void Clear();  // keeps the memory
};

}  // namespace llmctl::data
