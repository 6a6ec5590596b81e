// Heading and value, a line each, for people.
#pragma once

#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace llmctl::client {

using Fields = std::vector<std::pair<std::string, std::string>>;

// Lines without a value are left out.
void PrintFields(const Fields& fields, std::ostream& out);

}  // namespace llmctl::client
