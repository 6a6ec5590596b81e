// The .idx file of a Megatron-LM indexed dataset: where each sequence lies in the .bin.
//
// Layout in dataset.h. The arrays start at odd offsets, so they are read by copying, never by casting.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::data {

enum class TokenType : uint8_t { kInt32 = 4, kUint16 = 8 };

int TokenBytes(TokenType type);
// The narrowest that holds all ids below `vocabulary_size`.
TokenType TokenTypeFor(int vocabulary_size);

struct IndexHead {
  TokenType type = TokenType::kUint16;
  int64_t sequences = 0;
  int64_t documents = 0;  // document marks - 1
};

inline constexpr size_t kIndexHeadBytes = 34;
std::string EncodeIndexHead(const IndexHead& head);

// The arrays of an index whose head and size are right. What is in the arrays is as it lies in the file.
class IndexView {
 public:
  IndexView() = default;
  // DataLoss unless head and size are those of an index. `idx` outlives the view.
  static absl::StatusOr<IndexView> Create(absl::string_view idx);

  const IndexHead& head() const { return head_; }
  bool has_modes() const { return has_modes_; }
  int32_t length(int64_t sequence) const;
  int64_t offset(int64_t sequence) const;  // bytes
  int64_t mark(int64_t i) const;           // [0, documents]
  // A piece that goes on with a document begun elsewhere.
  bool continues(int64_t sequence) const;

 private:
  absl::string_view idx_;
  IndexHead head_;
  bool has_modes_ = false;
};

struct IndexSummary {
  TokenType type = TokenType::kUint16;
  int64_t sequences = 0;
  int64_t documents = 0;
  int64_t continued = 0;  // sequences whose mode says so
  int64_t tokens = 0;
};

// DataLoss unless `idx` is a whole index whose sequences lie in the .bin one after another. Reads all of it.
absl::StatusOr<IndexSummary> CheckIndex(absl::string_view idx);

}  // namespace llmctl::data
