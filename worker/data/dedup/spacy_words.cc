#include "worker/data/dedup/spacy_words.h"

#include <algorithm>

namespace llmctl::data {

SplitWords SpacyWords(const WordSplitter& splitter) {
  return [&splitter](absl::string_view text, std::vector<absl::string_view>& words) {
    while (!text.empty()) {
      size_t end = std::min(text.find(' '), text.size());
      if (end > 0) splitter.SplitChunk(text.substr(0, end), words);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  };
}

}  // namespace llmctl::data
