// Words as spaCy's blank English splits them, for the datatrove recipe.
#pragma once

#include "worker/data/dedup/shingle_source.h"
#include "worker/data/text/word_splitter.h"

namespace llmctl::data {

// `splitter` must outlive it. For simplified text, whose only white space is single spaces. Words that spaCy would join
// again are not: such special cases have punctuation, which simplified text has not.
SplitWords SpacyWords(const WordSplitter& splitter);

}  // namespace llmctl::data
