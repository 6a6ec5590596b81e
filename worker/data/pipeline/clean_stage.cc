#include "worker/data/pipeline/clean_stage.h"

#include <optional>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "worker/data/pipeline/block_file.h"
#include "worker/data/pipeline/chunk_cleaner.h"
#include "worker/data/pipeline/ordered_pipeline.h"
#include "worker/data/pipeline/wire.h"
#include "worker/data/read/file_system.h"
#include "worker/data/read/record_reader.h"

namespace llmctl::data {
namespace {

constexpr int kChunksInFlight = 2;  // besides one a thread

struct PieceChunk {
  int64_t piece = 0;
  std::unique_ptr<Chunk> chunk;
};

// The chunks of a task from some point on.
class TaskReader {
 public:
  TaskReader(const CorpusPlan& plan, const CleanTask& task, const ResumePoint& from)
      : plan_(plan), task_(task), next_(from) {}

  // Null at the end.
  absl::StatusOr<std::unique_ptr<PieceChunk>> Next() {
    while (next_.piece < static_cast<int64_t>(task_.pieces.size())) {
      if (reader_ == nullptr) LLM_RETURN_IF_ERROR(OpenPiece());
      LLM_ASSIGN_OR_RETURN(std::unique_ptr<Chunk> chunk, reader_->Next());
      if (chunk != nullptr) {
        auto out = std::make_unique<PieceChunk>();
        out->piece = next_.piece;
        out->chunk = std::move(chunk);
        return out;
      }
      reader_.reset();
      ++next_.piece;
      next_.position = Position();
    }
    return nullptr;
  }

 private:
  absl::Status OpenPiece() {
    const InputRange& piece = task_.pieces[next_.piece];
    const PlannedFile& planned = plan_.files[piece.file];
    LLM_ASSIGN_OR_RETURN(files_, FileSystemOf(planned.file.path));
    LLM_ASSIGN_OR_RETURN(ReadSettings settings, ReadSettingsOf(plan_.config, planned.source));
    LLM_ASSIGN_OR_RETURN(reader_, RecordReader::Open(*files_, planned.file,
                                                     {.file = piece.file,
                                                      .begin = piece.begin,
                                                      .end = piece.end,
                                                      .position = next_.position},
                                                     settings));
    return absl::OkStatus();
  }

  const CorpusPlan& plan_;
  const CleanTask& task_;
  ResumePoint next_;
  std::unique_ptr<FileSystem> files_;
  std::unique_ptr<RecordReader> reader_;
};

// Writes the segments of a task, one after the other.
class SegmentWriter {
 public:
  SegmentWriter(const Workspace& workspace, const Segment& first, const ResumePoint& from)
      : workspace_(workspace), segment_(first), piece_(from.piece), line_(from.position.line) {}

  absl::Status Add(const CleanedChunk& chunk) {
    LLM_RETURN_IF_ERROR(chunk.status);
    if (documents_ == nullptr) LLM_RETURN_IF_ERROR(Begin());
    EndPiecesBefore(chunk.piece);
    LLM_RETURN_IF_ERROR(AppendAll(chunk.documents, *documents_));
    LLM_RETURN_IF_ERROR(AppendAll(chunk.verdicts, *verdicts_));
    footer_.tally.Merge(chunk.tally);
    footer_.perplexities.Merge(chunk.perplexities);
    footer_.next = {.piece = chunk.piece, .position = chunk.end};
    line_ = chunk.end.line;
    text_bytes_ += chunk.text_bytes;
    footer_.bytes += chunk.kept_bytes;
    return text_bytes_ < workspace_.plan().limits.segment_bytes ? absl::OkStatus() : End(/*last=*/false);
  }

  // After the last chunk.
  absl::Status Finish() {
    if (documents_ == nullptr) LLM_RETURN_IF_ERROR(Begin());
    EndPiecesBefore(static_cast<int64_t>(workspace_.plan().tasks[segment_.task].pieces.size()));
    return End(/*last=*/true);
  }

 private:
  static absl::Status AppendAll(absl::string_view records, BlockFileWriter& out) {
    for (WireReader wire(records); !wire.rest().empty();) LLM_RETURN_IF_ERROR(out.Append(wire.Bytes()));
    return absl::OkStatus();
  }

  // The lines of the pieces that have come to their end.
  void EndPiecesBefore(int64_t piece) {
    for (; piece_ < piece; ++piece_) {
      footer_.piece_lines.push_back(line_ - 1);
      line_ = 1;
    }
  }

  absl::Status Begin() {
    LLM_ASSIGN_OR_RETURN(documents_, BlockFileWriter::Create(workspace_.files(), workspace_.DocumentsPath(segment_),
                                                             workspace_.clean_digest()));
    LLM_ASSIGN_OR_RETURN(verdicts_, BlockFileWriter::Create(workspace_.files(), workspace_.VerdictsPath(segment_),
                                                            workspace_.clean_digest()));
    return absl::OkStatus();
  }

  absl::Status End(bool last) {
    footer_.last = last;
    footer_.documents = documents_->records();
    LLM_ASSIGN_OR_RETURN(footer_.identity, documents_->Commit(""));
    LLM_RETURN_IF_ERROR(verdicts_->Commit("").status());
    LLM_RETURN_IF_ERROR(workspace_.WriteFooter(segment_, footer_));
    documents_.reset();
    verdicts_.reset();
    ++segment_.number;
    footer_ = {};
    text_bytes_ = 0;
    return absl::OkStatus();
  }

  const Workspace& workspace_;
  Segment segment_;
  int64_t piece_;
  int64_t line_;
  std::unique_ptr<BlockFileWriter> documents_;
  std::unique_ptr<BlockFileWriter> verdicts_;
  SegmentFooter footer_;
  int64_t text_bytes_ = 0;
};

class CleanWorker : public StageWorker {
 public:
  CleanWorker(const Workspace& workspace, const CleaningRules& rules, int threads, StageProgress& progress)
      : workspace_(workspace), threads_(threads), progress_(progress) {
    for (int i = 0; i < threads; ++i) cleaners_.push_back(std::make_unique<ChunkCleaner>(workspace.plan(), rules));
  }

  absl::Status Run(int task) override {
    const CorpusPlan& plan = workspace_.plan();
    Segment segment{.task = task};
    ResumePoint from;
    LLM_ASSIGN_OR_RETURN(bool finished, SkipFinished(segment, from));
    if (finished) {
      progress_.done += plan.tasks[task].bytes;
      return absl::OkStatus();
    }
    TaskReader reader(plan, plan.tasks[task], from);
    SegmentWriter writer(workspace_, segment, from);
    OrderedPipeline<PieceChunk, CleanedChunk> pipeline(threads_, threads_ + kChunksInFlight);
    LLM_RETURN_IF_ERROR(pipeline.Run([&] { return reader.Next(); },
                                     [&](int worker, PieceChunk& item) {
                                       CleanedChunk out = cleaners_[worker]->Run(*item.chunk);
                                       out.piece = item.piece;
                                       return out;
                                     },
                                     [&](CleanedChunk chunk) {
                                       progress_.done += chunk.file_bytes;
                                       return writer.Add(chunk);
                                     }));
    return writer.Finish();
  }

 private:
  // To the first segment that is not there; true if there is none.
  absl::StatusOr<bool> SkipFinished(Segment& segment, ResumePoint& from) const {
    for (;; ++segment.number) {
      absl::StatusOr<SegmentFooter> footer = workspace_.ReadFooter(segment);
      if (absl::IsNotFound(footer.status())) return false;
      LLM_RETURN_IF_ERROR(footer.status());
      if (!HasFiles(segment, *footer)) return false;
      if (footer->last) return true;
      from = footer->next;
    }
  }

  // Somebody may have removed what the segment speaks of.
  bool HasFiles(const Segment& segment, const SegmentFooter& footer) const {
    absl::StatusOr<std::unique_ptr<BlockFileReader>> documents = BlockFileReader::Open(
        workspace_.files(), workspace_.DocumentsPath(segment), workspace_.clean_digest());
    return documents.ok() && (*documents)->identity() == footer.identity &&
           BlockFileReader::Open(workspace_.files(), workspace_.VerdictsPath(segment), workspace_.clean_digest()).ok();
  }

  const Workspace& workspace_;
  const int threads_;
  StageProgress& progress_;
  std::vector<std::unique_ptr<ChunkCleaner>> cleaners_;
};

class CleanStage : public Stage {
 public:
  CleanStage(const Workspace& workspace, std::unique_ptr<CleaningRules> rules)
      : workspace_(workspace), rules_(std::move(rules)) {}

  int tasks() const override { return static_cast<int>(workspace_.plan().tasks.size()); }
  int64_t amount() const override { return workspace_.plan().bytes; }
  bool wants_threads() const override { return true; }
  absl::StatusOr<std::unique_ptr<StageWorker>> MakeWorker(int threads, int64_t, StageProgress& progress) override {
    return std::make_unique<CleanWorker>(workspace_, *rules_, threads, progress);
  }

 private:
  const Workspace& workspace_;
  const std::unique_ptr<CleaningRules> rules_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Stage>> MakeCleanStage(const Workspace& workspace) {
  const contract::CorpusConfig& config = workspace.plan().config;
  for (size_t source = 0; source < config.sources.size(); ++source) {
    LLM_RETURN_IF_ERROR(ReadSettingsOf(config, static_cast<int>(source)).status());
  }
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<CleaningRules> rules, CleaningRules::Create(config));
  return std::make_unique<CleanStage>(workspace, std::move(rules));
}

}  // namespace llmctl::data
