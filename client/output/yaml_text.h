// JSON values as YAML text that every reader takes the same way: strings that could pass for another type are
// quoted. The job specification in it reads back through common/spec.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace llmctl::client {

// Block style, two spaces a level, a newline at the end.
std::string ToYaml(const nlohmann::ordered_json& value);

}  // namespace llmctl::client
