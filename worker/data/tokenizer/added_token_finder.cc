#include "worker/data/tokenizer/added_token_finder.h"

#include "common/base/check.h"

namespace llmctl::data {

void AddedTokenFinder::Add(absl::string_view content, int32_t id) {
  CHECK(!content.empty()) << "an empty token is everywhere";
  begins_[static_cast<uint8_t>(content[0])] = true;
  uint32_t node = 0;
  for (char byte : content) {
    auto [child, is_new] = children_.emplace(Edge(node, byte), static_cast<uint32_t>(id_of_node_.size()));
    if (is_new) id_of_node_.push_back(-1);
    node = child->second;
  }
  id_of_node_[node] = id;
}

absl::optional<AddedTokenFinder::Match> AddedTokenFinder::Find(absl::string_view text, size_t from) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (!begins_[static_cast<uint8_t>(text[begin])]) continue;
    absl::optional<Match> longest;
    uint32_t node = 0;
    for (size_t at = begin; at < text.size(); ++at) {
      auto child = children_.find(Edge(node, text[at]));
      if (child == children_.end()) break;
      node = child->second;
      if (id_of_node_[node] >= 0) longest = Match{begin, at + 1, id_of_node_[node]};
    }
    if (longest) return longest;
  }
  return absl::nullopt;
}

}  // namespace llmctl::data
