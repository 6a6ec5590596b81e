// What a manifest says, for people.
#pragma once

#include "worker/data/shards/dataset.h"

namespace llmctl::data {

void PrintSplits(const DatasetManifest& manifest);

}  // namespace llmctl::data
