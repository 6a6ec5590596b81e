#include "tests/fuzz/perplexity_targets.h"

#include <cmath>
#include <string>

#include "common/base/check.h"
#include "worker/data/perplexity/line_normalizer.h"
#include "worker/data/perplexity/ngram_model.h"
#include "worker/data/perplexity/perplexity_filter.h"

namespace llmctl::fuzz {
namespace {

// A model that is read has finite scores for any words.
void RunArpa(absl::string_view bytes) {
  absl::StatusOr<data::ArpaReader> reader = data::ArpaReader::OpenText(bytes, "fuzz");
  if (!reader.ok()) {
    CHECK(!reader.status().message().empty());
    return;
  }
  absl::StatusOr<data::NgramModel> model = data::NgramModel::Load(*reader);
  if (!model.ok()) {
    CHECK(!model.status().message().empty());
    return;
  }
  data::NgramScorer scorer(*model);
  scorer.BeginLine();
  for (const char* word : {"a", "b", "<unk>", "a", "b", "a", "a"}) scorer.AddWord(word);
  scorer.EndLine();
  int words = 0;
  scorer.Score([&](const data::WordScore& score) {
    ++words;
    CHECK(!std::isnan(score.log_probability));
    CHECK(score.matched >= 1 && score.matched <= model->order()) << score.matched;
  });
  CHECK_EQ(words, 8);
}

// What is parsed is written as it was read.
void RunSketch(absl::string_view bytes) {
  absl::StatusOr<data::PerplexitySketch> sketch = data::PerplexitySketch::Parse(bytes);
  if (!sketch.ok()) return;
  const std::string text = sketch->Serialize();
  CHECK(data::PerplexitySketch::Parse(text)->Serialize() == text);
}

std::string SketchSeed() {
  data::PerplexitySketch sketch;
  sketch.Add("en", {.scored = true, .score = {}, .perplexity = 300});
  sketch.Add("", {.scored = true, .score = {}, .perplexity = 5});
  return sketch.Serialize();
}

constexpr char kModel[] =
    "\\data\\\nngram 1=5\nngram 2=4\nngram 3=2\n\n"
    "\\1-grams:\n-1\t<unk>\n-99\t<s>\t-0.5\n-0.25\t</s>\n-0.75\ta\t-0.125\n-0.5\tb\t-0.3\n\n"
    "\\2-grams:\n-0.5\t<s> a\t-0.1\n-0.25\ta b\t0\n-0.2\tb </s>\n-0.3\ta a\t0.1\n\n"
    "\\3-grams:\n-0.5\t<s> a b\n-0.25\ta b a\n\n\\end\\\n";

}  // namespace

std::vector<Target> PerplexityTargets() {
  return {{"arpa", RunArpa, {kModel}}, {"perplexity_sketch", RunSketch, {SketchSeed()}}};
}

}  // namespace llmctl::fuzz
