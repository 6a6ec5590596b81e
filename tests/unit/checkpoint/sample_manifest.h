// A manifest with every field set, for tests that do not care which values.
#pragma once

#include "worker/engine/checkpoint/manifest.h"

namespace llmctl::checkpoint {

inline Manifest SampleManifest() {
  Manifest manifest;
  manifest.job = "j-1";
  manifest.step = 20;
  manifest.attempt = 2;
  manifest.generation = 3;
  manifest.spec_digest = "spec";
  manifest.model = {"llama", 4, 256, 8, 4, 704, 260, 10000, 1e-5, true, 0.02};
  manifest.dataset_digest = "dataset";
  manifest.sampler_digest = "sampler";
  manifest.ledger.Append("sampler", 1, 80);
  manifest.ledger.AppendSkipped("sampler", 3, 8);
  manifest.ledger.Append("sampler", 3, 72);
  manifest.consumed_samples = 160;
  manifest.consumed_tokens = 160 * 256;
  manifest.optimizer = {"adamw", 19};
  manifest.seed = ~uint64_t{0};
  manifest.numerics = {{"precision", "fp32"}, {"torch", "2.11.0"}};
  return manifest;
}

}  // namespace llmctl::checkpoint
