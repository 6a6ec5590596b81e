// corpus.yaml -> what llm-data reads.
#include "client/command/corpus_file.h"

#include <string>

#include <gtest/gtest.h>

#include "worker/contract/corpus_config.h"
#include "worker/data/pipeline/settings.h"

namespace llmctl::client {
namespace {

contract::CorpusConfig Resolved(const std::string& path) {
  absl::StatusOr<v1::CorpusSpec> spec = ReadCorpusFile(path);
  EXPECT_TRUE(spec.ok()) << spec.status();
  // Strict: a field that one side has and the other has not is an error.
  absl::StatusOr<contract::CorpusConfig> config = contract::DecodeCorpusConfig(ResolvedCorpus(*spec, "/corpora"));
  EXPECT_TRUE(config.ok()) << config.status();
  return config.value_or(contract::CorpusConfig());
}

TEST(CorpusFile, EveryFieldOfTheSpecificationArrives) {
  contract::CorpusConfig config = Resolved("examples/corpus_reference.yaml");

  EXPECT_EQ(config.name, "reference");
  EXPECT_EQ(config.output, "/corpora/my-data");
  ASSERT_EQ(config.sources.size(), 1u);
  EXPECT_EQ(config.sources[0].paths, std::vector<std::string>{"/corpora/raw/*.jsonl.zst"});
  ASSERT_TRUE(config.language && config.quality && config.perplexity && config.pii && config.exact_dedup &&
              config.near_dedup && config.length_balance && config.mix && config.pack);
  EXPECT_EQ(config.language->keep[0].threshold, 0.65);
  EXPECT_EQ(config.perplexity->models[0].arpa, "/corpora/en.arpa");
  EXPECT_EQ(config.pii->key_file, "/corpora/pii.key");
  EXPECT_EQ(config.pii->types[0].replacement, "<IP>");
  EXPECT_EQ(config.length_balance->edges, (std::vector<int64_t>{512, 4096}));
  EXPECT_EQ(config.near_dedup->jaccard_min, 0.7);
  EXPECT_EQ(config.pack->sequence_length, 2048);
  EXPECT_EQ(config.tokenizer, "byte");
}

TEST(CorpusFile, DefaultsAreThoseOfTheLibraries) {
  contract::CorpusConfig config = Resolved("examples/corpus.yaml");

  EXPECT_EQ(data::QualitySettings(*config.quality), data::FilterSettings::FineWeb());
  EXPECT_EQ(data::NearDedupSettings(*config.near_dedup), data::NearSettings());
  EXPECT_FALSE(config.language || config.perplexity || config.pii || config.mix || config.pack);
}

}  // namespace
}  // namespace llmctl::client
