#include "worker/data/prepare/document_stage.h"

#include <algorithm>
#include <utility>

#include <xxhash.h>

#include "absl/strings/ascii.h"

namespace llmctl::data {
namespace {

void AddDocument(const Place& place, std::string text, ChunkDocuments& out) {
  NormalizeText(text, out.repairs);
  if (!HasContent(text)) {
    out.rejects.push_back({place, Reason::kEmpty, ""});
    return;
  }
  ContentHash hash = HashContent(text);
  out.documents.push_back({place, std::move(text), hash});
}

}  // namespace

ContentHash HashContent(absl::string_view text) {
  XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return {hash.high64, hash.low64};
}

DocumentStage::DocumentStage(std::string text_field, InvalidUtf8Policy policy)
    : policy_(policy), parser_(std::move(text_field)) {}

ChunkDocuments DocumentStage::Run(Chunk& chunk) {
  ChunkDocuments out;
  out.rejects = std::move(chunk.rejects);
  out.records = out.rejects.size();
  out.repairs.byte_order_marks = chunk.byte_order_marks;
  out.bytes_read = chunk.bytes_read;
  if (chunk.format == InputFormat::kText) {
    RunText(chunk, out);
    return out;
  }
  Place place = chunk.start;
  absl::string_view rest = chunk.bytes;
  while (!rest.empty()) {
    size_t end = std::min(rest.find('\n'), rest.size());
    RunLine(place, rest.substr(0, end), out);
    size_t taken = std::min(end + 1, rest.size());
    rest.remove_prefix(taken);
    place.byte += taken;
    ++place.line;
  }
  return out;
}

void DocumentStage::RunText(Chunk& chunk, ChunkDocuments& out) {
  if (chunk.bytes.empty()) return;
  ++out.records;
  if (!MakeUtf8(chunk.start, chunk.bytes, out)) return;
  AddDocument(chunk.start, std::move(chunk.bytes), out);
}

// A carriage return cannot stand raw inside a JSON string: in a file with the line ends of the old Mac OS it
// separates records.
void DocumentStage::RunLine(const Place& place, absl::string_view line, ChunkDocuments& out) {
  bool blank = true;
  Place at = place;
  while (!line.empty()) {
    size_t end = std::min(line.find('\r'), line.size());
    absl::string_view record = line.substr(0, end);
    if (!absl::StripAsciiWhitespace(record).empty()) {
      blank = false;
      RunRecord(at, record, out);
    }
    size_t taken = std::min(end + 1, line.size());
    line.remove_prefix(taken);
    at.byte += taken;
  }
  if (blank) ++out.blank_lines;
}

void DocumentStage::RunRecord(const Place& place, absl::string_view line, ChunkDocuments& out) {
  ++out.records;
  line_.assign(line.data(), line.size());
  if (!MakeUtf8(place, line_, out)) return;
  LineText parsed = parser_.Parse(line_, out.repairs);
  if (!parsed.ok) {
    out.rejects.push_back({place, parsed.reason, std::move(parsed.detail)});
    return;
  }
  AddDocument(place, std::move(parsed.text), out);
}

bool DocumentStage::MakeUtf8(const Place& place, std::string& text, ChunkDocuments& out) const {
  if (policy_ == InvalidUtf8Policy::kReplace) {
    out.repairs.invalid_utf8 += ReplaceInvalidUtf8(text);
    return true;
  }
  size_t bad = FindInvalidUtf8(text);
  if (bad == absl::string_view::npos) return true;
  Place at = place;
  at.line += std::count(text.begin(), text.begin() + bad, '\n');
  at.byte += bad;
  out.rejects.push_back({at, Reason::kInvalidUtf8, ""});
  return false;
}

}  // namespace llmctl::data
