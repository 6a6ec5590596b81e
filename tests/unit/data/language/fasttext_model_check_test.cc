#include "worker/data/language/fasttext_model_check.h"

#include <cstdint>
#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/file.h"
#include "tests/unit/data/language/trained_model.h"

namespace llmctl::data {
namespace {

using testing::HasSubstr;

std::string Model(bool quantized = false) { return *ReadFile(TrainedModel(quantized)); }

template <typename T>
std::string With(std::string model, size_t at, T value) {
  std::memcpy(model.data() + at, &value, sizeof value);
  return model;
}

std::string MessageOf(absl::string_view bytes) { return std::string(CheckFastTextModel(bytes).message()); }

TEST(CheckFastTextModel, TakesWhatTheLibraryWrote) {
  EXPECT_TRUE(CheckFastTextModel(Model()).ok()) << MessageOf(Model());
  EXPECT_TRUE(CheckFastTextModel(Model(/*quantized=*/true)).ok()) << MessageOf(Model(true));
}

TEST(CheckFastTextModel, RefusesAFileThatEndsEarly) {
  for (bool quantized : {false, true}) {
    const std::string model = Model(quantized);
    for (size_t size = 0; size < model.size(); size += size < 2000 ? 1 : 997) {
      ASSERT_FALSE(CheckFastTextModel(absl::string_view(model).substr(0, size)).ok()) << size;
    }
    EXPECT_THAT(MessageOf(model + "x"), HasSubstr("expected the end, 1 bytes are left"));
  }
}

// Places in the file: 8 dim, 28 wordNgrams, 32 loss, 36 model, 40 bucket, 44 minn, 48 maxn; 64 size, 68 nwords,
// 72 nlabels, 76 ntokens, 84 pruneidx_size, 92 the first word, "</s>".
TEST(CheckFastTextModel, SaysWhatIsWrongAndWhere) {
  const std::string model = Model();
  EXPECT_THAT(MessageOf("PK\x03\x04"), HasSubstr("no fastText model"));
  EXPECT_THAT(MessageOf(With<int32_t>(model, 4, 13)), HasSubstr("at byte 4: the format's version is 13"));
  EXPECT_THAT(MessageOf(With<int32_t>(model, 8, 0)), HasSubstr("at byte 8: dim is 0"));
  EXPECT_THAT(MessageOf(With<int32_t>(model, 36, 1)), HasSubstr("expected a supervised one"));
  EXPECT_THAT(MessageOf(With<int32_t>(model, 40, 0)), HasSubstr("n-grams without a bucket"));
  EXPECT_THAT(MessageOf(With<int32_t>(model, 40, 2001)), HasSubstr("a matrix's rows is"));
  EXPECT_THAT(MessageOf(With<int32_t>(model, 48, -1)), HasSubstr("at byte 48: maxn is -1"));
  EXPECT_THAT(MessageOf(With<int32_t>(model, 64, 1 << 29)), HasSubstr("nlabels is 5"));
  EXPECT_THAT(MessageOf(With<int64_t>(model, 84, 0)), HasSubstr("pruned"));
  EXPECT_THAT(MessageOf(With<int64_t>(model, 97, -1)), HasSubstr("at byte 97: a word's count is -1"));
  EXPECT_THAT(MessageOf(With<int8_t>(model, 105, 1)), HasSubstr("at byte 105: a word's type is 1, expected 0"));
  float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(MessageOf(With<float>(model, model.size() - 4, nan)), HasSubstr("a matrix: a weight is nan"));
}

}  // namespace
}  // namespace llmctl::data
