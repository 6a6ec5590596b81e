#include "worker/data/shards/index_writer.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/status.h"

namespace llmctl::data {
namespace {

constexpr int64_t kPiece = 1 << 16;  // elements, or bytes

template <typename T>
absl::string_view BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Calls `take(bytes)` with [begin, end) of `file`, in pieces of whole elements.
template <typename Take>
absl::Status ForPieces(OutputFile& file, int64_t begin, int64_t end, Take take) {
  std::vector<int64_t> buffer(kPiece);  // aligned for what is read as i32 or i64
  for (int64_t at = begin; at < end;) {
    size_t bytes = static_cast<size_t>(std::min<int64_t>(end - at, kPiece * sizeof(int64_t)));
    LLM_RETURN_IF_ERROR(file.ReadAt(at, reinterpret_cast<char*>(buffer.data()), bytes));
    LLM_RETURN_IF_ERROR(take(absl::string_view(reinterpret_cast<const char*>(buffer.data()), bytes)));
    at += static_cast<int64_t>(bytes);
  }
  return absl::OkStatus();
}

template <typename T>
absl::string_view OneOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace

absl::StatusOr<std::unique_ptr<IndexWriter>> IndexWriter::Create(const std::string& path, TokenType type, bool packed) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> idx, OutputFile::Create(path));
  std::unique_ptr<IndexWriter> out(new IndexWriter(type, std::move(idx)));
  // The head needs counts that are known at the end.
  LLM_RETURN_IF_ERROR(out->idx_->Append(std::string(kIndexHeadBytes, '\0')));
  if (packed) {
    LLM_ASSIGN_OR_RETURN(out->marks_, OutputFile::CreateNameless(path + ".marks"));
    LLM_ASSIGN_OR_RETURN(out->modes_, OutputFile::CreateNameless(path + ".modes"));
  }
  return out;
}

absl::Status IndexWriter::AddSequence(int32_t length, bool continues) {
  ++sequences_;
  if (modes_ != nullptr) LLM_RETURN_IF_ERROR(modes_->Append(continues ? absl::string_view("\1", 1) : OneOf('\0')));
  return idx_->Append(OneOf(length));
}

absl::Status IndexWriter::EndDocument() {
  ++documents_;
  CHECK(marks_ != nullptr || documents_ == sequences_) << "a document of a concat index has one sequence";
  return marks_ == nullptr ? absl::OkStatus() : marks_->Append(OneOf(sequences_));
}

absl::Status IndexWriter::Add(absl::string_view bytes) {
  checksum_.Add(bytes.data(), bytes.size());
  return idx_->Append(bytes);
}

absl::Status IndexWriter::WriteOffsets() {
  const int64_t width = TokenBytes(type_);
  const int64_t end = static_cast<int64_t>(kIndexHeadBytes) + 4 * sequences_;
  int64_t offset = 0;
  std::vector<int64_t> offsets;
  return ForPieces(*idx_, kIndexHeadBytes, end, [&](absl::string_view bytes) {
    const auto* lengths = reinterpret_cast<const int32_t*>(bytes.data());
    offsets.resize(bytes.size() / sizeof(int32_t));
    for (size_t i = 0; i < offsets.size(); ++i) {
      offsets[i] = offset;
      offset += lengths[i] * width;
    }
    LLM_RETURN_IF_ERROR(Add(BytesOf(offsets)));
    return idx_->Flush();
  });
}

absl::Status IndexWriter::WriteMarks() {
  int64_t mark = 0;
  if (marks_ != nullptr) {
    LLM_RETURN_IF_ERROR(Add(OneOf(mark)));
    LLM_RETURN_IF_ERROR(marks_->Flush());
    return ForPieces(*marks_, 0, marks_->size(), [&](absl::string_view bytes) { return Add(bytes); });
  }
  std::vector<int64_t> marks;
  while (mark <= documents_) {
    marks.clear();
    for (int64_t end = std::min(mark + kPiece, documents_ + 1); mark < end; ++mark) marks.push_back(mark);
    LLM_RETURN_IF_ERROR(Add(BytesOf(marks)));
  }
  return absl::OkStatus();
}

absl::Status IndexWriter::CopyModes() {
  if (modes_ == nullptr) return absl::OkStatus();
  LLM_RETURN_IF_ERROR(modes_->Flush());
  return ForPieces(*modes_, 0, modes_->size(), [&](absl::string_view bytes) { return Add(bytes); });
}

absl::StatusOr<std::string> IndexWriter::Finish() {
  LLM_RETURN_IF_ERROR(idx_->Flush());
  const std::string head = EncodeIndexHead({type_, sequences_, documents_});
  LLM_RETURN_IF_ERROR(idx_->WriteAt(0, head));
  checksum_.Add(head.data(), head.size());
  LLM_RETURN_IF_ERROR(ForPieces(*idx_, kIndexHeadBytes, idx_->size(), [&](absl::string_view bytes) {
    checksum_.Add(bytes.data(), bytes.size());
    return absl::OkStatus();
  }));
  LLM_RETURN_IF_ERROR(WriteOffsets());
  LLM_RETURN_IF_ERROR(WriteMarks());
  LLM_RETURN_IF_ERROR(CopyModes());
  LLM_RETURN_IF_ERROR(idx_->Flush());
  return checksum_.Hex();
}

}  // namespace llmctl::data
