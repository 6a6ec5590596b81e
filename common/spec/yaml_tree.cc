#include "common/spec/yaml_tree.h"

#include <algorithm>
#include <map>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/base/check.h"
#include "common/spec/utf8.h"

namespace llmctl::spec {

// Turns yaml-cpp's events into nodes. After the first fault that makes the rest meaningless, events are
// ignored: the handler cannot stop the parser.
class YamlTreeBuilder final : public YAML::EventHandler {
 public:
  YamlTreeBuilder(absl::string_view text, YamlTree& tree, FaultList& faults)
      : lines_(absl::StrSplit(text, '\n')), tree_(tree), faults_(faults) {}

  bool failed() const { return failed_; }

  // yaml-cpp counts lines and bytes from 0; people count lines and characters from 1.
  Position At(const YAML::Mark& mark) const {
    int line = std::clamp<int>(mark.line, 0, static_cast<int>(lines_.size()) - 1);
    absl::string_view before = lines_[line].substr(0, std::max(mark.column, 0));
    int characters = static_cast<int>(
        std::count_if(before.begin(), before.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; }));
    return {line + 1, characters + 1};
  }

  void Fail(Position position, const std::string& text) {
    if (!failed_) faults_.AddAt(position, "", text);
    failed_ = true;
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) Fail(At(mark), "found a second document, expected one: split the file");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (failed_) return;
    YamlNode& node = NewNode(mark, anchor, YamlNode::Kind::kNothing);
    Complete(node);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (failed_) return;
    if (tag != "!" && tag != "?") return FailTag(mark, tag);
    YamlNode& node = NewNode(mark, anchor, YamlNode::Kind::kScalar);
    node.text = value;
    node.quoted = tag == "!";
    Complete(node);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (failed_) return;
    auto found = anchors_.find(anchor);
    CHECK(found != anchors_.end()) << "yaml-cpp reports an alias before its anchor";
    bool open = std::any_of(open_.begin(), open_.end(), [&](const Open& o) { return o.node == found->second; });
    if (open) return Fail(At(mark), "found an alias inside its own anchor, expected one that ends: write it out");
    Complete(*found->second);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Start(mark, tag, anchor, YamlNode::Kind::kList);
  }
  void OnSequenceEnd() override { End(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Start(mark, tag, anchor, YamlNode::Kind::kMap);
  }
  void OnMapEnd() override { End(); }

 private:
  struct Open {
    YamlNode* node;
    const YamlNode* key;  // of the map entry whose value comes next
  };

  void FailTag(const YAML::Mark& mark, const std::string& tag) {
    Fail(At(mark), absl::StrCat("found the tag ", tag, ", expected none: the field decides the type"));
  }

  YamlNode& NewNode(const YAML::Mark& mark, YAML::anchor_t anchor, YamlNode::Kind kind) {
    YamlNode& node = tree_.nodes_.emplace_back();
    node.kind = kind;
    node.position = At(mark);
    if (anchor != 0) anchors_[anchor] = &node;
    return node;
  }

  void Start(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlNode::Kind kind) {
    if (failed_) return;
    if (tag != "?" && tag != "!" && !tag.empty()) return FailTag(mark, tag);
    YamlNode& node = NewNode(mark, anchor, kind);
    open_.push_back({&node, nullptr});
    if (open_.size() > kYamlDepthMax) FailDepth(node.position);
  }

  void End() {
    if (failed_) return;
    CHECK(!open_.empty()) << "yaml-cpp ends what it did not start";
    YamlNode& node = *open_.back().node;
    open_.pop_back();
    Complete(node);
  }

  void FailDepth(Position position) {
    Fail(position, absl::StrCat("found more than ", kYamlDepthMax, " levels of nesting, expected fewer"));
  }

  // Hands a finished node, or the target of an alias, to what is open around it.
  void Complete(const YamlNode& node) {
    if (open_.empty()) {
      tree_.root_ = &node;
      return;
    }
    Open& parent = open_.back();
    parent.node->nodes += node.nodes;
    parent.node->depth = std::max(parent.node->depth, node.depth + 1);
    if (parent.node->nodes > kYamlNodesMax) {
      return Fail(parent.node->position, absl::StrCat("found more than ", kYamlNodesMax,
                                                      " values with all aliases written out, expected fewer"));
    }
    if (open_.size() + node.depth > kYamlDepthMax) return FailDepth(parent.node->position);
    if (parent.node->kind == YamlNode::Kind::kList) {
      parent.node->items.push_back(&node);
    } else if (parent.key == nullptr) {
      parent.key = &node;
    } else {
      parent.node->entries.emplace_back(parent.key, &node);
      parent.key = nullptr;
    }
  }

  const std::vector<absl::string_view> lines_;
  YamlTree& tree_;
  FaultList& faults_;
  bool failed_ = false;
  int documents_ = 0;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, YamlNode*> anchors_;
};

namespace {

// What can be said about the text before it is read as YAML; false if it should not be.
bool CheckText(absl::string_view text, FaultList& faults) {
  if (text.size() > kYamlBytesMax) {
    faults.AddAt({1, 1}, "", absl::StrCat("found ", text.size(), " bytes, expected at most ", kYamlBytesMax,
                                          ": is this the right file?"));
    return false;
  }
  int line_number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++line_number;
    if (std::optional<BadCharacter> bad = FindBadCharacter(line)) {
      faults.AddAt({line_number, bad->column}, "", absl::StrCat("found ", bad->found, ", expected UTF-8 text"));
    }
    size_t indentation = line.find_first_not_of(' ');
    if (indentation != absl::string_view::npos && line[indentation] == '\t') {
      faults.AddAt({line_number, static_cast<int>(indentation) + 1}, "",
                   "found a tab in the indentation, expected spaces");
    }
  }
  return faults.empty();
}

void Parse(absl::string_view text, YamlTreeBuilder& builder) {
  std::istringstream stream{std::string(text)};
  // yaml-cpp reports bad files by exceptions; they go no further than this.
  try {
    YAML::Parser parser(stream);
    while (!builder.failed() && parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& e) {
    builder.Fail(builder.At(e.mark), absl::StrCat("found text that is not YAML (", e.msg,
                                                  "), expected `name: value` lines; check indentation and quotes"));
  }
}

}  // namespace

YamlTree::YamlTree(absl::string_view text, FaultList& faults) {
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");  // a byte order mark, which some editors write
  if (!CheckText(text, faults)) return;
  YamlTreeBuilder builder(text, *this, faults);
  Parse(text, builder);
  if (builder.failed()) {
    root_ = nullptr;
  } else if (root_ == nullptr || root_->kind == YamlNode::Kind::kNothing) {
    root_ = nullptr;
    faults.AddAt({1, 1}, "", "found an empty file, expected a specification (examples/ has some)");
  }
}

}  // namespace llmctl::spec
