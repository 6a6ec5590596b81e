#include "worker/data/language/fasttext_model_check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"

#include "common/base/status.h"

namespace llmctl::data {
namespace {

constexpr int32_t kMagic = 793712314;
constexpr int32_t kVersionMin = 11;
constexpr int32_t kVersionMax = 12;
constexpr int32_t kSupervised = 3;
constexpr int32_t kLossMax = 4;
constexpr int32_t kCentroids = 256;
// The library places the n-grams of every dictionary word when it loads.
constexpr int32_t kGramCharactersMax = 64;
constexpr int64_t kDimensionMax = 1 << 16;
// Real weights are below 100. With these as the most, no sum or product overflows to what is not a number, which
// predicting throws on.
constexpr float kWeightMax = 1e6f;
// The tree of a hierarchical softmax takes a count of 1e15 for "none".
constexpr int64_t kCountMax = 100'000'000'000'000;

class Cursor {
 public:
  explicit Cursor(absl::string_view bytes) : bytes_(bytes) {}

  size_t left() const { return bytes_.size() - at_; }

  template <typename T>
  absl::StatusOr<T> Read(absl::string_view what) {
    LLM_ASSIGN_OR_RETURN(absl::string_view raw, Take(sizeof(T), what));
    T value;
    std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }

  template <typename T>
  absl::StatusOr<T> ReadWithin(T low, T high, absl::string_view what) {
    LLM_ASSIGN_OR_RETURN(T value, Read<T>(what));
    if (value >= low && value <= high) return value;
    at_ -= sizeof(T);
    return Fault(absl::StrCat(what, " is ", value, ", expected ", low, high > low ? absl::StrCat(" to ", high) : ""));
  }

  absl::StatusOr<bool> ReadFlag(absl::string_view what) {
    LLM_ASSIGN_OR_RETURN(int8_t value, ReadWithin<int8_t>(0, 1, what));
    return value == 1;
  }

  absl::StatusOr<absl::string_view> Take(uint64_t size, absl::string_view what) {
    if (size > left()) return Fault(absl::StrCat(what, " takes ", size, " bytes, ", left(), " are left"));
    absl::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }

  absl::StatusOr<absl::string_view> TakeWord() {
    size_t end = bytes_.find('\0', at_);
    if (end == absl::string_view::npos) return Fault("a word of the dictionary does not end");
    absl::string_view word = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return word;
  }

  absl::Status TakeWeights(uint64_t rows, uint64_t columns, absl::string_view what) {
    if (columns != 0 && rows > left() / sizeof(float) / columns) {
      return Fault(absl::StrCat(what, " of ", rows, " x ", columns, " weights, ", left(), " bytes are left"));
    }
    for (uint64_t i = 0; i < rows * columns; ++i) {
      float weight;
      std::memcpy(&weight, bytes_.data() + at_, sizeof weight);
      if (!(std::abs(weight) <= kWeightMax)) return Fault(absl::StrCat(what, ": a weight is ", weight));
      at_ += sizeof weight;
    }
    return absl::OkStatus();
  }

  absl::Status Fault(absl::string_view fault) const {
    return absl::InvalidArgumentError(absl::StrCat("at byte ", at_, ": ", fault));
  }

 private:
  absl::string_view bytes_;
  size_t at_ = 0;
};

struct Shape {
  int32_t dimension = 0;
  int32_t buckets = 0;
  bool has_grams = false;
  int32_t words = 0;
  int32_t labels = 0;
  int64_t pruned = -1;  // n-grams that are kept; -1: all
  int64_t rows_min = 0;
};

absl::Status CheckArguments(Cursor& cursor, int32_t version, Shape& shape) {
  LLM_ASSIGN_OR_RETURN(shape.dimension, cursor.ReadWithin<int32_t>(1, kDimensionMax, "dim"));
  for (absl::string_view unused : {"ws", "epoch", "minCount", "neg"}) {
    LLM_RETURN_IF_ERROR(cursor.Read<int32_t>(unused).status());
  }
  LLM_ASSIGN_OR_RETURN(int32_t word_grams, cursor.ReadWithin<int32_t>(0, kGramCharactersMax, "wordNgrams"));
  LLM_RETURN_IF_ERROR(cursor.ReadWithin<int32_t>(1, kLossMax, "loss").status());
  LLM_ASSIGN_OR_RETURN(int32_t model, cursor.Read<int32_t>("model"));
  if (model != kSupervised) return cursor.Fault("the model gives word vectors, expected a supervised one with labels");
  LLM_ASSIGN_OR_RETURN(shape.buckets, cursor.ReadWithin<int32_t>(0, INT32_MAX, "bucket"));
  LLM_RETURN_IF_ERROR(cursor.ReadWithin<int32_t>(0, kGramCharactersMax, "minn").status());
  LLM_ASSIGN_OR_RETURN(int32_t characters_max, cursor.ReadWithin<int32_t>(0, kGramCharactersMax, "maxn"));
  LLM_RETURN_IF_ERROR(cursor.Read<int32_t>("lrUpdateRate").status());
  LLM_RETURN_IF_ERROR(cursor.Read<double>("t").status());
  shape.has_grams = (characters_max > 0 && version > kVersionMin) || word_grams > 1;
  if (shape.has_grams && shape.buckets == 0) return cursor.Fault("n-grams without a bucket for them");
  return absl::OkStatus();
}

absl::Status CheckEntries(Cursor& cursor, const Shape& shape) {
  int64_t label_count = 0;
  for (int64_t i = 0; i < int64_t{shape.words} + shape.labels; ++i) {
    bool is_label = i >= shape.words;
    LLM_ASSIGN_OR_RETURN(absl::string_view word, cursor.TakeWord());
    LLM_ASSIGN_OR_RETURN(int64_t count, cursor.ReadWithin<int64_t>(0, kCountMax, "a word's count"));
    LLM_RETURN_IF_ERROR(cursor.ReadWithin<int8_t>(is_label, is_label, "a word's type").status());
    if (is_label && (label_count += count) > kCountMax) return cursor.Fault("the counts of labels are too large");
    if (is_label && word.empty()) return cursor.Fault("a label is empty");
  }
  return absl::OkStatus();
}

absl::Status CheckDictionary(Cursor& cursor, Shape& shape) {
  LLM_ASSIGN_OR_RETURN(int32_t size, cursor.ReadWithin<int32_t>(1, INT32_MAX / 2, "the dictionary's size"));
  LLM_ASSIGN_OR_RETURN(shape.words, cursor.ReadWithin<int32_t>(0, size - 1, "nwords"));
  LLM_ASSIGN_OR_RETURN(shape.labels, cursor.ReadWithin<int32_t>(size - shape.words, size - shape.words, "nlabels"));
  LLM_RETURN_IF_ERROR(cursor.Read<int64_t>("ntokens").status());
  LLM_ASSIGN_OR_RETURN(shape.pruned, cursor.ReadWithin<int64_t>(-1, INT32_MAX, "pruneidx_size"));
  LLM_RETURN_IF_ERROR(CheckEntries(cursor, shape));
  shape.rows_min = int64_t{shape.words} + (shape.has_grams && shape.pruned < 0 ? shape.buckets : 0);
  for (int64_t i = 0; i < shape.pruned; ++i) {
    LLM_RETURN_IF_ERROR(cursor.Read<int32_t>("an n-gram's hash").status());
    LLM_ASSIGN_OR_RETURN(int32_t row, cursor.ReadWithin<int32_t>(0, INT32_MAX - shape.words, "an n-gram's row"));
    shape.rows_min = std::max<int64_t>(shape.rows_min, int64_t{shape.words} + row + 1);
  }
  return absl::OkStatus();
}

// The codebook of `dimension` numbers in pieces; `pieces` is how many codes a row has.
absl::Status CheckQuantizer(Cursor& cursor, int32_t dimension, int64_t& pieces) {
  LLM_RETURN_IF_ERROR(cursor.ReadWithin<int32_t>(dimension, dimension, "a quantizer's dim").status());
  LLM_ASSIGN_OR_RETURN(int32_t count, cursor.ReadWithin<int32_t>(1, dimension, "nsubq"));
  LLM_ASSIGN_OR_RETURN(int32_t size, cursor.ReadWithin<int32_t>(1, dimension, "dsub"));
  LLM_ASSIGN_OR_RETURN(int32_t last, cursor.ReadWithin<int32_t>(1, size, "lastdsub"));
  if (int64_t{count - 1} * size + last != dimension) {
    return cursor.Fault(absl::StrCat(count, " pieces of ", size, ", the last of ", last, ", are not ", dimension));
  }
  pieces = count;
  return cursor.TakeWeights(dimension, kCentroids, "centroids");
}

absl::Status CheckQuantized(Cursor& cursor, int64_t rows_min, int64_t rows_max, int32_t dimension) {
  LLM_ASSIGN_OR_RETURN(bool has_norms, cursor.ReadFlag("qnorm"));
  LLM_ASSIGN_OR_RETURN(int64_t rows, cursor.ReadWithin<int64_t>(rows_min, rows_max, "a matrix's rows"));
  LLM_RETURN_IF_ERROR(cursor.ReadWithin<int64_t>(dimension, dimension, "a matrix's columns").status());
  LLM_ASSIGN_OR_RETURN(int32_t codes, cursor.ReadWithin<int32_t>(0, INT32_MAX, "codesize"));
  LLM_RETURN_IF_ERROR(cursor.Take(codes, "the codes of a matrix").status());
  int64_t pieces = 0;
  LLM_RETURN_IF_ERROR(CheckQuantizer(cursor, dimension, pieces));
  if (rows * pieces != codes) {
    return cursor.Fault(absl::StrCat(codes, " codes, expected ", rows, " rows of ", pieces));
  }
  if (!has_norms) return absl::OkStatus();
  LLM_RETURN_IF_ERROR(cursor.Take(rows, "the norms of a matrix").status());
  return CheckQuantizer(cursor, 1, pieces);
}

absl::Status CheckMatrix(Cursor& cursor, bool quantized, int64_t rows_min, int64_t rows_max, int32_t dimension) {
  if (quantized) return CheckQuantized(cursor, rows_min, rows_max, dimension);
  LLM_ASSIGN_OR_RETURN(int64_t rows, cursor.ReadWithin<int64_t>(rows_min, rows_max, "a matrix's rows"));
  LLM_RETURN_IF_ERROR(cursor.ReadWithin<int64_t>(dimension, dimension, "a matrix's columns").status());
  return cursor.TakeWeights(rows, dimension, "a matrix");
}

}  // namespace

absl::Status CheckFastTextModel(absl::string_view bytes) {
  Cursor cursor(bytes);
  absl::StatusOr<int32_t> magic = cursor.Read<int32_t>("a fastText model's mark");
  if (!magic.ok() || *magic != kMagic) {
    return absl::InvalidArgumentError("no fastText model: it does not begin with a model's mark, ba 16 4f 2f");
  }
  LLM_ASSIGN_OR_RETURN(int32_t version, cursor.ReadWithin(kVersionMin, kVersionMax, "the format's version"));
  Shape shape;
  LLM_RETURN_IF_ERROR(CheckArguments(cursor, version, shape));
  LLM_RETURN_IF_ERROR(CheckDictionary(cursor, shape));
  LLM_ASSIGN_OR_RETURN(bool quantized, cursor.ReadFlag("quant_input"));
  if (!quantized && shape.pruned >= 0) return cursor.Fault("n-grams were pruned, but the model is not quantized");
  LLM_RETURN_IF_ERROR(CheckMatrix(cursor, quantized, shape.rows_min, INT32_MAX, shape.dimension));
  LLM_ASSIGN_OR_RETURN(bool quantized_output, cursor.ReadFlag("qout"));
  LLM_RETURN_IF_ERROR(
      CheckMatrix(cursor, quantized && quantized_output, shape.labels, shape.labels, shape.dimension));
  if (cursor.left() != 0) return cursor.Fault(absl::StrCat("expected the end, ", cursor.left(), " bytes are left"));
  return absl::OkStatus();
}

}  // namespace llmctl::data
