#include "worker/data/read/chunk_parser.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "worker/data/normalize/text_normalizer.h"
#include "worker/data/normalize/utf8_repair.h"

namespace llmctl::data {
namespace {

// A shorter text is copied together with others rather than keep an allocation of its own.
constexpr size_t kAdoptBytesMin = size_t{256} << 10;

// Where the first part of a text that is longer than `bytes_max` ends: at a line's end or between two characters.
size_t PartEnd(absl::string_view text, size_t bytes_max) {
  size_t newline = text.rfind('\n', bytes_max - 1);
  if (newline != absl::string_view::npos) return newline + 1;
  size_t end = bytes_max;
  while ((static_cast<uint8_t>(text[end]) & 0xc0) == 0x80) --end;
  return end;
}

}  // namespace

ChunkParser::ChunkParser(const ReadSettings& settings) : settings_(settings), json_(settings) {}

void ChunkParser::Parse(Chunk& chunk, ParsedChunk& out) {
  out.Clear();
  out.rejects = std::move(chunk.rejects);
  out.records = out.rejects.size();
  out.repairs = chunk.repairs;
  out.file_bytes = chunk.file_bytes;
  switch (chunk.format) {
    case InputFormat::kText: ParseText(chunk, out); break;
    case InputFormat::kJsonLines: ParseLines(chunk, out); break;
    case InputFormat::kParquet: ParseRows(chunk, out); break;
  }
  std::move(chunk.last_rejects.begin(), chunk.last_rejects.end(), std::back_inserter(out.rejects));
}

void ChunkParser::ParseLines(const Chunk& chunk, ParsedChunk& out) {
  Place place = chunk.place;
  absl::string_view rest = chunk.bytes;
  while (!rest.empty()) {
    size_t end = std::min(rest.find('\n'), rest.size());
    ParseLine(place, rest.substr(0, end), out);
    size_t taken = std::min(end + 1, rest.size());
    rest.remove_prefix(taken);
    place.byte += taken;
    ++place.line;
  }
}

// A carriage return cannot stand raw inside a JSON string: in a file with the line ends of the old Mac OS it
// separates records.
void ChunkParser::ParseLine(const Place& place, absl::string_view line, ParsedChunk& out) {
  bool blank = true;
  Place at = place;
  while (!line.empty()) {
    size_t end = std::min(line.find('\r'), line.size());
    absl::string_view record = line.substr(0, end);
    if (!absl::StripLeadingAsciiWhitespace(record).empty()) {
      blank = false;
      ParseRecord(at, record, out);
    }
    size_t taken = std::min(end + 1, line.size());
    line.remove_prefix(taken);
    at.byte += taken;
  }
  if (blank) ++out.blank_lines;
}

void ChunkParser::ParseRecord(const Place& place, absl::string_view record, ParsedChunk& out) {
  ++out.records;
  LineText parsed = json_.Parse(record, out.repairs);
  if (!parsed.ok) {
    Place at = place;
    at.byte += parsed.byte;
    out.rejects.push_back({at, parsed.reason, std::move(parsed.detail)});
  } else if (!HasContent(parsed.text)) {
    out.rejects.push_back({place, Reason::kEmpty, ""});
  } else {
    AddParts({place, 0, out.strings.Copy(parsed.id), out.strings.Copy(parsed.text)}, out);
  }
}

void ChunkParser::ParseText(Chunk& chunk, ParsedChunk& out) {
  if (chunk.bytes.empty()) return;
  if (chunk.part == 0) ++out.records;
  if (!MakeUtf8(chunk.place, chunk.bytes, out)) return;
  if (!HasContent(chunk.bytes)) {
    // Of a document that is split, only the whole would be worth a word.
    if (chunk.part == 0) out.rejects.push_back({chunk.place, Reason::kEmpty, ""});
    return;
  }
  absl::string_view text = chunk.bytes.size() < kAdoptBytesMin ? out.strings.Copy(chunk.bytes)
                                                               : out.strings.Adopt(std::move(chunk.bytes));
  out.documents.push_back({chunk.place, chunk.part, "", text});
}

void ChunkParser::ParseRows(Chunk& chunk, ParsedChunk& out) {
  out.rows = std::move(chunk.rows);
  if (out.rows == nullptr) return;
  Place place = chunk.place;
  for (RowBatch::Row& row : out.rows->rows) {
    ++out.records;
    // An id is of use as it is, or not at all.
    if (FindInvalidUtf8(row.id) != absl::string_view::npos) {
      row.id = "";
      ++out.repairs.unusable_ids;
    }
    if (row.kind != RowBatch::Kind::kString) {
      Reason reason = row.kind == RowBatch::Kind::kNull ? Reason::kFieldNull : Reason::kFieldMissing;
      out.rejects.push_back({place, reason, ""});
    } else if (FindInvalidUtf8(row.text) == absl::string_view::npos) {
      if (HasContent(row.text)) {
        AddParts({place, 0, row.id, row.text}, out);
      } else {
        out.rejects.push_back({place, Reason::kEmpty, ""});
      }
    } else if (std::string repaired(row.text); MakeUtf8(place, repaired, out)) {
      AddParts({place, 0, row.id, out.strings.Copy(repaired)}, out);
    } else {
      out.rejects.back().place = place;
    }
    ++place.byte;
    ++place.line;
  }
}

// The text has something in it.
void ChunkParser::AddParts(ParsedDocument document, ParsedChunk& out) const {
  size_t bytes_max = settings_.document_bytes_max;
  if (document.text.size() <= bytes_max) {
    out.documents.push_back(document);
    return;
  }
  if (settings_.giant == GiantPolicy::kReject) {
    out.rejects.push_back({document.place, Reason::kDocumentTooLong,
                           absl::StrCat(document.text.size(), " bytes, at most ", bytes_max)});
    return;
  }
  ++out.repairs.giants_split;
  absl::string_view rest = document.text;
  while (!rest.empty()) {
    size_t end = rest.size() > bytes_max ? PartEnd(rest, bytes_max) : rest.size();
    document.text = rest.substr(0, end);
    rest.remove_prefix(end);
    if (!HasContent(document.text)) continue;
    out.documents.push_back(document);
    ++document.part;
  }
}

bool ChunkParser::MakeUtf8(const Place& place, std::string& text, ParsedChunk& out) const {
  if (settings_.invalid_utf8 == InvalidUtf8Policy::kReplace) {
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
