#include "worker/data/pipeline/workspace.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/base/status.h"
#include "worker/data/pipeline/block_file.h"
#include "worker/data/pipeline/settings.h"
#include "worker/data/pipeline/wire.h"

namespace llmctl::data {
namespace {

constexpr int kFolderDigits = 12;  // of a digest, in the name of a folder

std::string FolderName(absl::string_view what, const std::string& digest) {
  return absl::StrCat(what, "-", digest.substr(0, kFolderDigits));
}

std::vector<std::string> PartDigests(const std::vector<Segment>& segments) {
  std::vector<std::string> out;
  for (const Segment& segment : segments) out.push_back(absl::StrCat(absl::Hex(segment.identity, absl::kZeroPad16)));
  return out;
}

std::string EncodeFooter(const SegmentFooter& footer) {
  std::string out;
  PutVarint(footer.last, out);
  PutVarint(footer.documents, out);
  PutVarint(footer.bytes, out);
  PutFixed64(footer.identity, out);
  PutVarint(footer.next.piece, out);
  const Position& position = footer.next.position;
  for (int64_t number : {position.byte, position.line, position.frame_offset, position.frame_byte}) {
    PutVarint(number, out);
  }
  PutVarint(footer.piece_lines.size(), out);
  for (int64_t lines : footer.piece_lines) PutVarint(lines, out);
  footer.tally.Encode(out);
  PutBytes(footer.perplexities.Serialize(), out);
  return out;
}

absl::StatusOr<SegmentFooter> DecodeFooter(absl::string_view bytes) {
  WireReader wire(bytes);
  SegmentFooter footer;
  footer.last = wire.Varint() != 0;
  footer.documents = wire.Varint();
  footer.bytes = wire.Varint();
  footer.identity = wire.Fixed64();
  footer.next.piece = static_cast<int64_t>(wire.Varint());
  Position& position = footer.next.position;
  for (int64_t* number : {&position.byte, &position.line, &position.frame_offset, &position.frame_byte}) {
    *number = static_cast<int64_t>(wire.Varint());
  }
  for (uint64_t left = wire.Varint(); left > 0 && wire.ok(); --left) {
    footer.piece_lines.push_back(static_cast<int64_t>(wire.Varint()));
  }
  LLM_RETURN_IF_ERROR(footer.tally.Decode(wire));
  LLM_ASSIGN_OR_RETURN(footer.perplexities, PerplexitySketch::Parse(wire.Bytes()));
  return footer;
}

}  // namespace

int64_t TextBytes(const std::vector<Segment>& segments) {
  int64_t bytes = 0;
  for (const Segment& segment : segments) bytes += static_cast<int64_t>(segment.bytes);
  return bytes;
}

std::string Workspace::Name(const Segment& segment) const {
  return absl::StrFormat("%06d-%04d", segment.task, segment.number);
}

std::string Workspace::SegmentPath(const Segment& segment) const {
  return absl::StrCat(folder_, "/", FolderName("clean", plan_.clean_digest), "/", Name(segment), ".segment");
}

std::string Workspace::DocumentsPath(const Segment& segment) const {
  return absl::StrCat(folder_, "/", FolderName("clean", plan_.clean_digest), "/", Name(segment), ".documents");
}

std::string Workspace::VerdictsPath(const Segment& segment) const {
  return absl::StrCat(folder_, "/", FolderName("clean", plan_.clean_digest), "/", Name(segment), ".verdicts");
}

std::string Workspace::TokensPath(const Segment& segment, absl::string_view ending) const {
  return absl::StrCat(TokensFolder(), "/", Name(segment), ".", ending);
}

std::string Workspace::TokensFolder() const {
  return absl::StrCat(folder_, "/", FolderName("tokens", plan_.encode_digest));
}

std::string Workspace::DedupFolder(int pass) const {
  return pass < static_cast<int>(plan_.exact_digests.size()) ? PlanOfExact(pass, {}).folder : PlanOfNear({}).folder;
}

absl::StatusOr<SegmentFooter> Workspace::ReadFooter(const Segment& segment) const {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<BlockFileReader> file,
                       BlockFileReader::Open(files_, SegmentPath(segment), plan_.clean_digest));
  return DecodeFooter(file->footer());
}

absl::Status Workspace::WriteFooter(const Segment& segment, const SegmentFooter& footer) const {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<BlockFileWriter> file,
                       BlockFileWriter::Create(files_, SegmentPath(segment), plan_.clean_digest));
  return file->Commit(EncodeFooter(footer)).status();
}

absl::StatusOr<std::vector<Segment>> Workspace::Segments() const {
  std::vector<Segment> segments;
  for (int task = 0; task < static_cast<int>(plan_.tasks.size()); ++task) {
    bool last = false;
    for (int number = 0; !last; ++number) {
      Segment segment{.task = task, .number = number};
      absl::StatusOr<SegmentFooter> footer = ReadFooter(segment);
      if (absl::IsNotFound(footer.status())) {
        return absl::FailedPreconditionError(absl::StrCat("part ", task, " of the input has not been read to its end"));
      }
      LLM_RETURN_IF_ERROR(footer.status());
      segment.documents = footer->documents;
      segment.bytes = footer->bytes;
      segment.identity = footer->identity;
      last = footer->last;
      segments.push_back(segment);
    }
  }
  return segments;
}

ExactPlan Workspace::PlanOfExact(int pass, const std::vector<Segment>& segments) const {
  ExactPlan plan;
  plan.settings = ExactDedupSettings(plan_.config.exact_dedup)[pass];
  std::string what = absl::StrCat("exact-", TextUnitName(plan.settings.unit));
  plan.folder = absl::StrCat(folder_, "/", FolderName(what, plan_.exact_digests[pass]));
  plan.part_digests = PartDigests(segments);
  return plan;
}

NearPlan Workspace::PlanOfNear(const std::vector<Segment>& segments) const {
  return {.settings = NearDedupSettings(*plan_.config.near_dedup),
          .folder = absl::StrCat(folder_, "/", FolderName("near", plan_.near_digest)),
          .part_digests = PartDigests(segments)};
}

}  // namespace llmctl::data
