#include "worker/data/inspect/dataset_view.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/base/check.h"
#include "common/base/status.h"
#include "worker/data/shards/dataset_tokenizer.h"
#include "worker/data/shards/sampler.h"

namespace llmctl::data {
namespace {

int OctaveOf(int64_t length) { return std::bit_width(static_cast<uint64_t>(length)) - 1; }

}  // namespace

void LengthCounts::Add(int64_t length) {
  CHECK_GT(length, 0);
  int octave = OctaveOf(length);
  // Which sixteenth of [2^octave, 2^(octave + 1)); below 16 a part is a number.
  int64_t part = ((length - (int64_t{1} << octave)) * kParts) >> octave;
  ++parts_[octave * kParts + part];
  tokens_[octave] += length;
  least_ = count_ == 0 ? length : std::min(least_, length);
  largest_ = std::max(largest_, length);
  total_ += length;
  ++count_;
}

int64_t LengthCounts::Quantile(double quantile) const {
  int64_t wanted = std::max<int64_t>(1, std::ceil(quantile * static_cast<double>(count_)));
  int64_t seen = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    seen += parts_[i];
    if (seen < wanted || parts_[i] == 0) continue;
    int64_t octave = int64_t{1} << i / kParts, part = static_cast<int64_t>(i % kParts);
    // The largest length of the part.
    return std::min(largest_, octave + ((part + 1) * octave + kParts - 1) / kParts - 1);
  }
  return largest_;
}

std::vector<LengthCounts::Bar> LengthCounts::Histogram() const {
  std::vector<Bar> bars;
  if (count_ == 0) return bars;
  for (int octave = OctaveOf(least_); octave <= OctaveOf(largest_); ++octave) {
    Bar& bar = bars.emplace_back(Bar{int64_t{1} << octave, int64_t{2} << octave, 0, tokens_[octave]});
    for (int part = 0; part < kParts; ++part) bar.count += parts_[octave * kParts + part];
  }
  return bars;
}

absl::StatusOr<std::unique_ptr<DatasetView>> DatasetView::Open(const std::string& directory) {
  LLM_ASSIGN_OR_RETURN(DatasetManifest manifest, ReadManifest(directory));
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer, OpenDatasetTokenizer(directory, manifest));
  std::unique_ptr<DatasetView> view(new DatasetView(directory, std::move(manifest), std::move(tokenizer)));
  for (const SplitInfo& split : view->manifest_.splits) {
    LLM_ASSIGN_OR_RETURN(view->splits_[split.name], ShardReader::Open(directory, split.name));
  }
  return view;
}

DatasetView::DatasetView(std::string directory, DatasetManifest manifest, std::unique_ptr<Tokenizer> tokenizer)
    : directory_(std::move(directory)), manifest_(std::move(manifest)), tokenizer_(std::move(tokenizer)) {}

absl::StatusOr<const ShardReader*> DatasetView::Split(const std::string& split) const {
  auto found = splits_.find(split);
  if (found != splits_.end()) return found->second.get();
  return absl::InvalidArgumentError(absl::StrCat("dataset ", directory_, " has no split \"", split, "\""));
}

absl::StatusOr<std::vector<int32_t>> DatasetView::Tokens(const std::string& split, int64_t document) const {
  LLM_ASSIGN_OR_RETURN(const ShardReader* reader, Split(split));
  if (document < 0 || document >= reader->sequences()) {
    return absl::InvalidArgumentError(
        absl::StrCat(split, " has documents 0 to ", reader->sequences() - 1, ", not ", document));
  }
  LLM_ASSIGN_OR_RETURN(ShardReader::Sequence sequence, reader->At(document));
  std::vector<int32_t> tokens(sequence.length);
  reader->Copy(sequence.begin, absl::MakeSpan(tokens));
  for (int32_t token : tokens) {
    if (token >= 0 && token < manifest_.vocabulary_size) continue;
    return absl::DataLossError(absl::StrCat(split, " document ", document, " has token ", token,
                                            ", the vocabulary has ", manifest_.vocabulary_size));
  }
  return tokens;
}

absl::StatusOr<std::string> DatasetView::Text(const std::string& split, int64_t document) const {
  LLM_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, Tokens(split, document));
  if (tokens.back() == manifest_.end_of_document) tokens.pop_back();
  return tokenizer_->Decode(tokens);
}

absl::StatusOr<std::vector<int64_t>> DatasetView::Sample(const std::string& split, int64_t count,
                                                         uint64_t seed) const {
  LLM_ASSIGN_OR_RETURN(const ShardReader* reader, Split(split));
  std::vector<int64_t> out;
  for (int64_t i = 0; i < std::min(count, reader->sequences()); ++i) {
    out.push_back(static_cast<int64_t>(Permute(i, reader->sequences(), seed, 0, "view")));
  }
  return out;
}

absl::StatusOr<LengthCounts> DatasetView::Lengths(const std::string& split) const {
  LLM_ASSIGN_OR_RETURN(const ShardReader* reader, Split(split));
  LengthCounts lengths;
  for (int64_t i = 0; i < reader->sequences(); ++i) {
    LLM_ASSIGN_OR_RETURN(ShardReader::Sequence sequence, reader->At(i));
    lengths.Add(sequence.length);
  }
  return lengths;
}

std::string Excerpt(absl::string_view text, size_t characters) {
  std::string out;
  size_t shown = 0, at = 0;
  for (; at < text.size(); ++at) {
    unsigned char byte = static_cast<unsigned char>(text[at]);
    bool begins = (byte & 0xC0) != 0x80;
    if (begins && shown == characters) break;
    shown += begins ? 1 : 0;
    if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      absl::StrAppendFormat(&out, "\\x%02x", byte);
    } else {
      out += static_cast<char>(byte);
    }
  }
  return at < text.size() ? out + "..." : out;
}

}  // namespace llmctl::data
