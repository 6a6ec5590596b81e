#include "common/layout/parameters.h"

#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmctl::layout {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ModelShape Shape() {
  return {.architecture = "llama", .layers = 2, .hidden = 48, .heads = 6, .kv_heads = 2, .ffn = 100, .vocabulary = 259};
}

const Parameter& Find(const ParameterTable& table, const std::string& name) {
  for (const Parameter& p : table.parameters) {
    if (p.name == name) return p;
  }
  ADD_FAILURE() << "no parameter " << name;
  return table.parameters.front();
}

TEST(Parameters, HaveTheShapesOfHuggingFace) {
  ParameterTable table = Parameters(Shape());

  EXPECT_EQ(table.parameters.size(), 3u + 2 * 9);
  EXPECT_THAT(Find(table, "model.embed_tokens.weight").shape, ElementsAre(259, 48));
  EXPECT_THAT(Find(table, "model.layers.1.self_attn.q_proj.weight").shape, ElementsAre(48, 48));
  EXPECT_THAT(Find(table, "model.layers.1.self_attn.v_proj.weight").shape, ElementsAre(16, 48));
  EXPECT_THAT(Find(table, "model.layers.0.self_attn.o_proj.weight").shape, ElementsAre(48, 48));
  EXPECT_THAT(Find(table, "model.layers.0.mlp.up_proj.weight").shape, ElementsAre(100, 48));
  EXPECT_THAT(Find(table, "model.layers.0.mlp.down_proj.weight").shape, ElementsAre(48, 100));
  EXPECT_THAT(Find(table, "lm_head.weight").shape, ElementsAre(259, 48));
}

TEST(Parameters, TiedModelHasNoHeadOfItsOwn) {
  ModelShape shape = Shape();
  shape.tie_embeddings = true;

  for (const Parameter& p : Parameters(shape).parameters) EXPECT_NE(p.name, "lm_head.weight");
}

TEST(Parameters, LieInOrderOnVectorBoundariesWithoutOverlap) {
  ParameterTable table = Parameters(Shape());

  int64_t end = 0, count = 0;
  std::set<std::string> names;
  for (const Parameter& p : table.parameters) {
    EXPECT_EQ(p.offset % 16, 0) << p.name;
    EXPECT_GE(p.offset, end) << p.name;
    EXPECT_LT(p.offset - end, 16) << p.name;
    end = p.offset + p.count;
    count += p.count;
    names.insert(p.name);
  }
  EXPECT_GE(table.flat_size, end);
  EXPECT_EQ(table.count, count);
  EXPECT_EQ(names.size(), table.parameters.size());
}

TEST(Parameters, OnlyMatricesDecayAndBranchesBeginSmaller) {
  ParameterTable table = Parameters(Shape());

  EXPECT_FALSE(Find(table, "model.layers.0.input_layernorm.weight").decay);
  EXPECT_FALSE(Find(table, "model.norm.weight").decay);
  EXPECT_TRUE(Find(table, "model.embed_tokens.weight").decay);
  EXPECT_EQ(Find(table, "model.norm.weight").init_std, 0);
  EXPECT_DOUBLE_EQ(Find(table, "model.layers.0.self_attn.q_proj.weight").init_std, 0.02);
  for (const char* name : {"model.layers.1.self_attn.o_proj.weight", "model.layers.1.mlp.down_proj.weight"}) {
    EXPECT_DOUBLE_EQ(Find(table, name).init_std, 0.02 / std::sqrt(4.0)) << name;
  }
}

TEST(ValidateShape, NamesEveryFaultAtOnce) {
  ModelShape shape = Shape();
  EXPECT_TRUE(ValidateShape(shape).ok());
  shape.architecture = "gpt9";
  shape.kv_heads = 4;
  shape.hidden = 50;

  std::string message(ValidateShape(shape).message());

  EXPECT_THAT(message, HasSubstr("architecture: expected \"llama\", found \"gpt9\""));
  EXPECT_THAT(message, HasSubstr("kv_heads: expected a divisor of heads (6), found 4"));
  EXPECT_THAT(message, HasSubstr("hidden_size: expected a multiple of 16, found 50"));
  EXPECT_THAT(message, HasSubstr("heads: expected hidden_size (50) to be a multiple of twice the heads, found 6"));
}

TEST(ValidateShape, RefusesAShapeWithoutHeads) {
  ModelShape shape = Shape();
  shape.heads = 0;

  EXPECT_THAT(std::string(ValidateShape(shape).message()), HasSubstr("heads and kv_heads: expected at least 1"));
}

TEST(ValidateShape, RefusesHeadsTooLargeForTheKernels) {
  ModelShape shape = Shape();
  shape.hidden = 1024;
  shape.heads = 2;

  EXPECT_THAT(std::string(ValidateShape(shape).message()), HasSubstr("head size of at most 256, found 512"));
}

}  // namespace
}  // namespace llmctl::layout
