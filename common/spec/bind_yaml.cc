#include "common/spec/bind_yaml.h"

#include <map>
#include <optional>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/spec/field_rules.h"
#include "common/spec/nearest_name.h"
#include "common/spec/scalar.h"
#include "common/spec/yaml_tree.h"

namespace llmctl::spec {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

const FieldDescriptor* FindField(const Descriptor& section, const std::string& name) {
  for (int i = 0; i < section.field_count(); ++i) {
    if (section.field(i)->json_name() == name) return section.field(i);
  }
  return nullptr;
}

std::string Found(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNothing: return "nothing";
    case YamlNode::Kind::kScalar: return Shown(node.text);
    case YamlNode::Kind::kMap: return "a section";
    case YamlNode::Kind::kList: return "a list";
  }
  return "";
}

// Walks tree and message together.
class Binder {
 public:
  Binder(Positions& positions, FaultList& faults) : positions_(positions), faults_(faults) {}

  void ReadSection(const YamlNode& node, const std::string& path, Message& section) {
    for (const Entry& entry : UniqueEntries(node, path)) {
      const FieldDescriptor* field = FindField(*section.GetDescriptor(), entry.name);
      if (field == nullptr) {
        AddUnknown(entry, path, *section.GetDescriptor());
      } else {
        ReadField(entry, *field, ChildPath(path, entry.name), section);
      }
    }
  }

 private:
  struct Entry {
    std::string name;
    Position position;  // of the name
    const YamlNode* value;
  };

  std::vector<Entry> UniqueEntries(const YamlNode& node, const std::string& path) {
    std::vector<Entry> out;
    std::map<std::string, Position> first;
    for (const auto& [key, value] : node.entries) {
      if (key->kind != YamlNode::Kind::kScalar) {
        faults_.AddAt(key->position, path, absl::StrCat("found ", Found(*key), " as a name, expected text"));
        continue;
      }
      auto [seen, is_new] = first.emplace(key->text, key->position);
      if (is_new) {
        out.push_back({key->text, key->position, value});
      } else {
        faults_.AddAt(key->position, ChildPath(path, key->text),
                      absl::StrCat("found a second time (first in line ", seen->second.line, "), expected once"));
      }
    }
    return out;
  }

  void AddUnknown(const Entry& entry, const std::string& path, const Descriptor& section) {
    std::vector<std::string> names = FieldNames(section);
    std::optional<std::string> nearest = NearestName(entry.name, names);
    faults_.AddAt(entry.position, ChildPath(path, entry.name),
                  nearest ? absl::StrCat("unknown field; did you mean ", *nearest, "?")
                          : absl::StrCat("unknown field, expected one of ", absl::StrJoin(names, ", ")));
    if (nearest) faults_.Excuse(ChildPath(path, *nearest));
  }

  void ReadField(const Entry& entry, const FieldDescriptor& field, const std::string& path, Message& section) {
    if (field.is_map()) return ReadMap(entry, field, path, section);
    if (field.is_repeated()) return ReadList(entry, field, path, section);
    bool is_section = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    YamlNode::Kind expected = is_section ? YamlNode::Kind::kMap : YamlNode::Kind::kScalar;
    // A section of which every line is commented out is an empty one.
    if (is_section && entry.value->kind == YamlNode::Kind::kNothing) expected = YamlNode::Kind::kNothing;
    if (entry.value->kind != expected) return AddMismatch(entry, field, path);
    positions_[path] = is_section ? entry.position : entry.value->position;
    if (is_section) {
      ReadSection(*entry.value, path, *section.GetReflection()->MutableMessage(&section, &field));
    } else if (auto fault = SetScalar({entry.value->text, entry.value->quoted}, field, section)) {
      faults_.AddAt(entry.value->position, path, *fault);
    }
  }

  void ReadList(const Entry& list, const FieldDescriptor& field, const std::string& path, Message& section) {
    positions_[path] = list.position;
    if (list.value->kind != YamlNode::Kind::kList) return AddMismatch(list, field, path, "a list, each ");
    for (size_t i = 0; i < list.value->items.size(); ++i) {
      const YamlNode& item = *list.value->items[i];
      ReadItem({list.name, item.position, &item}, field, ItemPath(path, i), section);
    }
    // Each was at fault: that none is left says nothing new.
    bool none_left = section.GetReflection()->FieldSize(section, &field) == 0;
    if (none_left && !list.value->items.empty()) faults_.Excuse(path);
  }

  void ReadItem(const Entry& item, const FieldDescriptor& field, const std::string& path, Message& section) {
    positions_[path] = item.position;
    bool is_section = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (item.value->kind != (is_section ? YamlNode::Kind::kMap : YamlNode::Kind::kScalar)) {
      return AddMismatch(item, field, path);
    }
    if (is_section) {
      ReadSection(*item.value, path, *section.GetReflection()->AddMessage(&section, &field));
    } else if (auto fault = SetScalar({item.value->text, item.value->quoted}, field, section)) {
      faults_.AddAt(item.position, path, *fault);
    }
  }

  void ReadMap(const Entry& map, const FieldDescriptor& field, const std::string& path, Message& section) {
    positions_[path] = map.position;
    if (map.value->kind == YamlNode::Kind::kNothing) return;
    if (map.value->kind != YamlNode::Kind::kMap) return AddMismatch(map, field, path);
    const FieldDescriptor& key = *field.message_type()->map_key();
    const FieldDescriptor& value = *field.message_type()->map_value();
    for (const Entry& entry : UniqueEntries(*map.value, path)) {
      std::string entry_path = ChildPath(path, entry.name);
      if (entry.value->kind != YamlNode::Kind::kScalar) {
        AddMismatch(entry, value, entry_path);
        continue;
      }
      positions_[entry_path] = entry.position;
      Message& pair = *section.GetReflection()->AddMessage(&section, &field);
      pair.GetReflection()->SetString(&pair, &key, entry.name);
      if (auto fault = SetScalar({entry.value->text, entry.value->quoted}, value, pair)) {
        faults_.AddAt(entry.value->position, entry_path, *fault);
      }
    }
  }

  void AddMismatch(const Entry& entry, const FieldDescriptor& field, const std::string& path,
                   absl::string_view form = "") {
    // yaml-cpp places a value that is not there at the next thing that is.
    Position position = entry.value->kind == YamlNode::Kind::kNothing ? entry.position : entry.value->position;
    faults_.AddAt(position, path,
                  absl::StrCat("found ", Found(*entry.value), ", expected ", form, ExpectedValue(field)));
  }

  Positions& positions_;
  FaultList& faults_;
};

}  // namespace

absl::Status ReadSpec(absl::string_view text, absl::string_view file, Message& spec,
                      absl::FunctionRef<void(const Positions& given, FaultList& faults)> check) {
  FaultList faults;
  YamlTree tree(text, faults);
  if (tree.root() != nullptr) {
    Positions positions{{"", Position{1, 1}}};
    if (tree.root()->kind == YamlNode::Kind::kMap) {
      Binder(positions, faults).ReadSection(*tree.root(), "", spec);
      check(positions, faults);
    } else {
      faults.AddAt(tree.root()->position, "",
                   absl::StrCat("found ", Found(*tree.root()), ", expected `name: value` lines"));
    }
  }
  return faults.ToStatus(file);
}

}  // namespace llmctl::spec
