#include "worker/data/pack/packed_writer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "worker/data/pack/best_fit.h"
#include "worker/data/shards/sequence_writer.h"

namespace llmctl::data {
namespace {

constexpr int64_t kReservedTokensMax = int64_t{1} << 26;

class PackedWriter : public ShardWriter {
 public:
  PackedWriter(std::unique_ptr<SequenceWriter> out, const PackSettings& settings)
      : out_(std::move(out)), settings_(settings), capacity_(settings.row_tokens()) {
    // Growing would hold the window twice.
    window_.reserve(std::min(settings.window_tokens, kReservedTokensMax));
  }

  absl::Status BeginGroup(const std::string& name) override {
    LLM_RETURN_IF_ERROR(WriteWindow());
    return out_->BeginGroup(name, out_->rows());
  }

  absl::Status AddDocument(absl::Span<const int32_t> tokens) override {
    LLM_RETURN_IF_ERROR(out_->Check(tokens));
    bool longer = static_cast<int64_t>(tokens.size()) > capacity_;
    if (longer && settings_.long_documents == LongDocuments::kTruncate) {
      ++figures_.truncated_documents;
      figures_.truncated_tokens += static_cast<int64_t>(tokens.size()) - capacity_;
      tokens = tokens.first(capacity_);
      longer = false;
    }
    if (longer) ++figures_.cut_documents;
    if (!window_.empty() && static_cast<int64_t>(window_.size() + tokens.size()) > settings_.window_tokens) {
      LLM_RETURN_IF_ERROR(WriteWindow());
    }
    out_->CountDocument(static_cast<int64_t>(tokens.size()));
    window_.insert(window_.end(), tokens.begin(), tokens.end());
    for (int64_t left = static_cast<int64_t>(tokens.size()); left > 0; left -= capacity_) {
      lengths_.push_back(static_cast<int32_t>(std::min(left, capacity_)));
      continues_.push_back(left < static_cast<int64_t>(tokens.size()));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<SplitInfo> Finish() override {
    LLM_RETURN_IF_ERROR(WriteWindow());
    LLM_ASSIGN_OR_RETURN(SplitInfo info, out_->Finish(out_->rows()));
    figures_.rows = out_->rows();
    figures_.pieces = out_->sequences();
    figures_.padding_tokens = figures_.rows * capacity_ - info.tokens;
    info.packed = figures_;
    return info;
  }

 private:
  // Packs what has come and writes it; the window is empty afterwards.
  absl::Status WriteWindow() {
    const BestFit packed = PackBestFitDecreasing(lengths_, static_cast<int32_t>(capacity_));
    // Pieces of a row as a list, in input order; rows by their first piece.
    std::vector<int32_t> last(packed.row_count, -1), next(lengths_.size(), -1), firsts;
    std::vector<int64_t> begins(lengths_.size());
    int64_t begin = 0;
    for (size_t i = 0; i < lengths_.size(); ++i) {
      int32_t& before = last[packed.rows[i]];
      if (before < 0) {
        firsts.push_back(static_cast<int32_t>(i));
      } else {
        next[before] = static_cast<int32_t>(i);
      }
      before = static_cast<int32_t>(i);
      begins[i] = begin;
      begin += lengths_[i];
    }
    absl::Span<const int32_t> tokens = window_;
    for (int32_t first : firsts) {
      for (int32_t i = first; i >= 0; i = next[i]) {
        LLM_RETURN_IF_ERROR(out_->AddSequence(tokens.subspan(begins[i], lengths_[i]), continues_[i]));
      }
      LLM_RETURN_IF_ERROR(out_->EndDocument());
    }
    window_.clear();
    lengths_.clear();
    continues_.clear();
    return absl::OkStatus();
  }

  std::unique_ptr<SequenceWriter> out_;
  const PackSettings settings_;
  const int64_t capacity_;
  PackedFigures figures_;
  // What waits to be packed: tokens end to end, and the lengths of the pieces they are cut into.
  std::vector<int32_t> window_;
  std::vector<int32_t> lengths_;
  std::vector<bool> continues_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ShardWriter>> CreatePackedWriter(const std::string& directory, const std::string& split,
                                                                int vocabulary_size, const PackSettings& settings) {
  LLM_RETURN_IF_ERROR(settings.Validate());
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<SequenceWriter> out,
                       SequenceWriter::Create({directory, split, vocabulary_size, /*packed=*/true}));
  return std::make_unique<PackedWriter>(std::move(out), settings);
}

}  // namespace llmctl::data
