#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/status.h"
#include "worker/data/shards/dataset.h"
#include "worker/data/shards/index_format.h"
#include "worker/data/shards/mapped_file.h"

namespace llmctl::data {
namespace {

class MegatronReader : public ShardReader {
 public:
  MegatronReader(std::unique_ptr<MappedFile> bin, std::unique_ptr<MappedFile> idx, const SplitInfo& info)
      : bin_(std::move(bin)), idx_(std::move(idx)), view_(*IndexView::Create(idx_->content())),
        width_(TokenBytes(view_.head().type)), documents_(info.documents), tokens_(info.tokens),
        packed_(info.packed.has_value()) {}

  int64_t tokens() const override { return tokens_; }
  int64_t documents() const override { return documents_; }
  int64_t rows() const override { return packed_ ? view_.head().documents : 0; }
  int64_t sequences() const override { return view_.head().sequences; }

  absl::StatusOr<Sequence> At(int64_t sequence) const override {
    CHECK(sequence >= 0 && sequence < sequences()) << "sequence " << sequence << " of " << sequences();
    int64_t offset = view_.offset(sequence), length = view_.length(sequence);
    bool inside = offset >= 0 && offset % width_ == 0 && length > 0 && offset / width_ <= tokens_ - length;
    if (inside) return Sequence{offset / width_, length, view_.continues(sequence)};
    return absl::DataLossError(absl::StrCat("index: sequence ", sequence, " of ", length, " tokens at byte ", offset,
                                            " does not lie in a stream of ", tokens_,
                                            " tokens; check the dataset with `llmctl data verify`"));
  }

  absl::StatusOr<SequenceRange> Row(int64_t row) const override {
    CHECK(row >= 0 && row < rows()) << "row " << row << " of " << rows();
    SequenceRange range{view_.mark(row), view_.mark(row + 1)};
    if (range.begin >= 0 && range.begin < range.end && range.end <= sequences()) return range;
    return absl::DataLossError(absl::StrCat("index: row ", row, " has sequences ", range.begin, " to ", range.end,
                                            " of ", sequences(),
                                            "; check the dataset with `llmctl data verify`"));
  }

  int64_t Find(int64_t token) const override {
    CHECK(token >= 0 && token < tokens_) << "token " << token << " of " << tokens_;
    int64_t low = 0, high = sequences();  // the answer is in [low, high)
    while (high - low > 1) {
      int64_t middle = low + (high - low) / 2;
      (view_.offset(middle) <= token * width_ ? low : high) = middle;
    }
    return low;
  }

  void Copy(int64_t begin, absl::Span<int32_t> out) const override {
    CHECK(begin >= 0 && begin + static_cast<int64_t>(out.size()) <= tokens_)
        << "tokens [" << begin << ", +" << out.size() << ") of " << tokens_;
    const char* source = bin_->content().data() + begin * width_;
    if (width_ == sizeof(int32_t)) {
      std::memcpy(out.data(), source, out.size() * sizeof(int32_t));
      return;
    }
    for (size_t i = 0; i < out.size(); ++i) {
      uint16_t token;
      std::memcpy(&token, source + 2 * i, sizeof token);
      out[i] = token;
    }
  }

  void WillNeed(int64_t begin, int64_t count) const override { bin_->WillNeed(begin * width_, count * width_); }

 private:
  std::unique_ptr<MappedFile> bin_;
  std::unique_ptr<MappedFile> idx_;
  const IndexView view_;
  const int width_;
  const int64_t documents_;
  const int64_t tokens_;
  const bool packed_;
};

// That the files and the manifest are of one dataset, as far as sizes tell.
absl::Status CheckSizes(const std::string& stem, const IndexHead& head, int64_t bin_bytes,
                        const DatasetManifest& manifest, const SplitInfo& info) {
  TokenType type = TokenTypeFor(manifest.vocabulary_size);
  int64_t sequences = info.packed.has_value() ? info.packed->pieces : info.documents;
  int64_t documents = info.packed.has_value() ? info.packed->rows : info.documents;
  if (head.sequences != sequences || head.documents != documents || head.type != type) {
    return absl::DataLossError(absl::StrCat(
        stem, ".idx has ", head.sequences, " sequences in ", head.documents, " documents of ", TokenBytes(head.type),
        "-byte tokens, the manifest says ", sequences, " in ", documents, " of ", TokenBytes(type),
        "; the files are not of one dataset"));
  }
  if (bin_bytes == info.tokens * TokenBytes(type)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(stem, ".bin has ", bin_bytes, " bytes, the manifest says ", info.tokens,
                                          " tokens of ", TokenBytes(type), " bytes; prepare the dataset anew"));
}

}  // namespace

absl::StatusOr<SplitInfo> FindSplit(const DatasetManifest& manifest, const std::string& directory,
                                    const std::string& split) {
  for (const SplitInfo& info : manifest.splits) {
    if (info.name == split) return info;
  }
  return absl::InvalidArgumentError(absl::StrCat("dataset ", directory, " has no split \"", split, "\""));
}

absl::StatusOr<std::unique_ptr<ShardReader>> ShardReader::Open(const std::string& directory, const std::string& split) {
  LLM_ASSIGN_OR_RETURN(DatasetManifest manifest, ReadManifest(directory));
  LLM_ASSIGN_OR_RETURN(SplitInfo info, FindSplit(manifest, directory, split));
  std::string stem = absl::StrCat(directory, "/", split);
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<MappedFile> idx, MappedFile::Open(stem + ".idx", MappedFile::Access::kRandom));
  absl::StatusOr<IndexView> view = IndexView::Create(idx->content());
  if (!view.ok()) return Annotate(view.status(), stem, ".idx");
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<MappedFile> bin, MappedFile::Open(stem + ".bin", MappedFile::Access::kRandom));
  LLM_RETURN_IF_ERROR(CheckSizes(stem, view->head(), bin->content().size(), manifest, info));
  return std::make_unique<MegatronReader>(std::move(bin), std::move(idx), info);
}

}  // namespace llmctl::data
