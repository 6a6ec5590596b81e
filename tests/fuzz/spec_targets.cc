#include <string>

#include "common/base/check.h"
#include "common/spec/digest.h"
#include "common/spec/read_corpus_spec.h"
#include "common/spec/read_job_spec.h"
#include "tests/fuzz/target.h"

namespace llmctl::fuzz {
namespace {

void RunJobSpec(absl::string_view bytes) {
  absl::StatusOr<v1::JobSpec> spec = spec::ReadJobSpec(bytes, "job.yaml");
  if (spec.ok()) {
    CHECK_EQ(spec::SpecDigest(*spec).size(), 64u);
  } else {
    CHECK(!spec.status().message().empty());
  }
}

void RunCorpusSpec(absl::string_view bytes) {
  absl::StatusOr<v1::CorpusSpec> spec = spec::ReadCorpusSpec(bytes, "corpus.yaml");
  if (spec.ok()) {
    spec::ApplyCorpusDefaults(*spec);
    CHECK_GE(spec->sources_size(), 1);
  } else {
    CHECK(!spec.status().message().empty());
  }
}

}  // namespace

std::vector<Target> SpecTargets() {
  return {{"corpus_spec",
           RunCorpusSpec,
           {"apiVersion: llmctl/v1\nkind: Corpus\nmetadata: {name: a}\noutput: out\nsources:\n  - name: web\n"
            "    paths: [a.jsonl, &p b/]\n  - {name: books, paths: [*p], textField: meta.text}\nlanguage:\n  keep:\n"
            "    - {language: en, threshold: 0.5}\nquality: {c4: {sentencesMin: 2}}\nlengthBalance:\n  edges: [1, 2]\n"
            "  weights: [1, 2.5, 3]\n"}},
          {"job_spec",
           RunJobSpec,
           {"apiVersion: llmctl/v1\nkind: TrainingJob\nmetadata: {name: a}\nmodel:\n  architecture: llama\n"
            "  layers: 4\n  hiddenSize: 256\n  heads: 4\ndata:\n  dataset: /d\n  sequenceLength: 256\ntraining:\n  steps: 10\n"
            "  globalBatchSize: 16\n  optimizer: &o\n    learningRate: 2e-3\ncheckpoint:\n  directory: \"/c\"\n"}}};
}

}  // namespace llmctl::fuzz
