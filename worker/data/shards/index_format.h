// The .idx file of a Megatron-LM indexed dataset: where each document lies in the .bin.
//
// Layout in dataset.h. The arrays start at odd offsets, so they are read by copying, never by casting.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace llmctl::data {

enum class TokenType : uint8_t { kInt32 = 4, kUint16 = 8 };

int TokenBytes(TokenType type);
// The narrowest that holds all ids below `vocabulary_size`.
TokenType TokenTypeFor(int vocabulary_size);

struct IndexSummary {
  TokenType type = TokenType::kUint16;
  int64_t documents = 0;
  int64_t tokens = 0;
};

// DataLoss unless `idx` is a whole index whose sequences lie in the .bin one after another.
absl::StatusOr<IndexSummary> CheckIndex(absl::string_view idx);

// The index of documents of one sequence each, in pieces so that its size does not matter.
class IndexText {
 public:
  IndexText(TokenType type, absl::Span<const int32_t> lengths) : type_(type), lengths_(lengths) {}
  // Calls `sink(bytes)` for each piece in order; stops at the first error.
  template <typename Sink>
  absl::Status Write(Sink sink) const {
    absl::Status status = sink(Head());
    for (Part part : {Part::kLengths, Part::kOffsets, Part::kDocuments}) {
      int64_t offset = 0;
      for (size_t at = 0; status.ok() && at < Count(part); at += kPiece) status = sink(Piece(part, at, offset));
    }
    return status;
  }

 private:
  enum class Part { kLengths, kOffsets, kDocuments };
  static constexpr size_t kPiece = 1 << 16;
  size_t Count(Part part) const { return lengths_.size() + (part == Part::kDocuments ? 1 : 0); }
  std::string Head() const;
  // Elements [at, at + kPiece) of an array; `offset` is carried along by kOffsets.
  std::string Piece(Part part, size_t at, int64_t& offset) const;

  TokenType type_;
  absl::Span<const int32_t> lengths_;
};

}  // namespace llmctl::data
