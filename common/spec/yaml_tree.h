// YAML as a tree that still knows how it was written: positions, quotes, duplicates.
//
// yaml-cpp's own node tree forgets what a strict reader needs, so the tree is built from its events. Hostile
// files are stopped here: the text is bounded, and so is what it becomes once aliases are followed, however
// cleverly they are stacked. Total: any bytes give a tree or faults; nothing throws.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/spec/fault.h"

namespace llmctl::spec {

// A specification takes some kilobytes; yaml-cpp takes quadratic time on some files.
inline constexpr size_t kYamlBytesMax = 128 << 10;
// Nodes of the tree with every alias written out.
inline constexpr size_t kYamlNodesMax = 20000;
inline constexpr size_t kYamlDepthMax = 32;

struct YamlNode {
  enum class Kind { kNothing, kScalar, kMap, kList };

  Kind kind = Kind::kNothing;
  Position position;
  std::string text;     // of a scalar
  bool quoted = false;  // a scalar in quotes or a block scalar: a string whatever it looks like
  // Of a map: pairs of key and value in the order of the file, duplicates included. An aliased value is the
  // node of its anchor.
  std::vector<std::pair<const YamlNode*, const YamlNode*>> entries;
  std::vector<const YamlNode*> items;  // of a list
  size_t nodes = 1;  // in this subtree, aliases written out
  size_t depth = 1;
};

class YamlTree {
 public:
  // Reads `text`, which must hold exactly one document. With faults, root() may be null.
  YamlTree(absl::string_view text, FaultList& faults);
  YamlTree(const YamlTree&) = delete;
  YamlTree& operator=(const YamlTree&) = delete;

  const YamlNode* root() const { return root_; }

 private:
  friend class YamlTreeBuilder;

  std::deque<YamlNode> nodes_;  // stable addresses
  const YamlNode* root_ = nullptr;
};

}  // namespace llmctl::spec
