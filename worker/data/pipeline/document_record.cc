#include "worker/data/pipeline/document_record.h"

#include "worker/data/pipeline/wire.h"

namespace llmctl::data {
namespace {

void PutPlace(const DocumentPlace& place, std::string& out) {
  PutVarint(place.file, out);
  PutVarint(place.line, out);
  PutVarint(place.byte, out);
}

DocumentPlace ReadPlace(WireReader& wire) {
  DocumentPlace place;
  place.file = static_cast<int64_t>(wire.Varint());
  place.line = static_cast<int64_t>(wire.Varint());
  place.byte = static_cast<int64_t>(wire.Varint());
  return place;
}

absl::Status Whole(const WireReader& wire, absl::string_view what) {
  if (wire.ok() && wire.rest().empty()) return absl::OkStatus();
  return absl::DataLossError(what);
}

}  // namespace

void EncodeDocument(const DocumentRecord& document, std::string& out) {
  out.clear();
  PutPlace(document.place, out);
  PutBytes(document.id, out);
  PutBytes(document.language, out);
  PutDouble(document.perplexity, out);
  PutBytes(document.text, out);
}

absl::Status DecodeDocument(absl::string_view bytes, DocumentRecord& document) {
  WireReader wire(bytes);
  document.place = ReadPlace(wire);
  document.id = wire.Bytes();
  document.language = wire.Bytes();
  document.perplexity = wire.Double();
  document.text = wire.Bytes();
  return Whole(wire, "a record of the work folder is no document");
}

void EncodeVerdict(const VerdictRecord& verdict, std::string& out) {
  out.clear();
  PutPlace(verdict.place, out);
  PutBytes(verdict.id, out);
  PutBytes(verdict.language, out);
  PutDouble(verdict.language_score, out);
  PutDouble(verdict.perplexity, out);
  PutVarint(verdict.bytes, out);
  PutVarint(verdict.fault, out);
  PutBytes(verdict.detail, out);
  PutBytes(verdict.outcome.reason, out);
  PutDouble(verdict.outcome.measured, out);
  PutDouble(verdict.outcome.threshold, out);
  PutBytes(verdict.measurements, out);
}

absl::Status DecodeVerdict(absl::string_view bytes, VerdictRecord& verdict) {
  WireReader wire(bytes);
  verdict.place = ReadPlace(wire);
  verdict.id = wire.Bytes();
  verdict.language = wire.Bytes();
  verdict.language_score = wire.Double();
  verdict.perplexity = wire.Double();
  verdict.bytes = wire.Varint();
  verdict.fault = wire.Varint() != 0;
  verdict.detail = wire.Bytes();
  verdict.outcome.reason = std::string(wire.Bytes());
  verdict.outcome.measured = wire.Double();
  verdict.outcome.threshold = wire.Double();
  verdict.measurements = wire.Bytes();
  return Whole(wire, "a record of the audit is no verdict");
}

}  // namespace llmctl::data
