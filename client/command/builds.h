// Which builds a cluster is made of: during an upgrade they differ, and afterwards they should not.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace llmctl::client {

// Who runs each build ("coordinator", hosts).
using BuildUsers = std::map<std::string, std::vector<std::string>>;

// One line that says who runs what; empty if all run the same.
std::string DescribeSkew(const BuildUsers& users);

}  // namespace llmctl::client
