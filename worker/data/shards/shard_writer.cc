#include <memory>
#include <utility>

#include "common/base/status.h"
#include "worker/data/shards/dataset.h"
#include "worker/data/shards/sequence_writer.h"

namespace llmctl::data {
namespace {

class ConcatWriter : public ShardWriter {
 public:
  explicit ConcatWriter(std::unique_ptr<SequenceWriter> out) : out_(std::move(out)) {}

  absl::Status BeginGroup(const std::string& name) override { return out_->BeginGroup(name, out_->tokens()); }

  absl::Status AddDocument(absl::Span<const int32_t> tokens) override {
    LLM_RETURN_IF_ERROR(out_->Check(tokens));
    out_->CountDocument(static_cast<int64_t>(tokens.size()));
    LLM_RETURN_IF_ERROR(out_->AddSequence(tokens, /*continues=*/false));
    return out_->EndDocument();
  }

  absl::StatusOr<SplitInfo> Finish() override { return out_->Finish(out_->tokens()); }

 private:
  std::unique_ptr<SequenceWriter> out_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ShardWriter>> ShardWriter::Create(const std::string& directory, const std::string& split,
                                                                 int vocabulary_size) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<SequenceWriter> out,
                       SequenceWriter::Create({directory, split, vocabulary_size, /*packed=*/false}));
  return std::make_unique<ConcatWriter>(std::move(out));
}

}  // namespace llmctl::data
