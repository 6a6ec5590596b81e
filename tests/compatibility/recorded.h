// Files of this folder: what programs of earlier builds have said and stored. They are only ever added to: a change
// that cannot read them breaks every cluster that is being upgraded (docs/compatibility.md).
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace llmctl {

inline std::string ReadRecorded(const std::string& name) {
  std::ifstream file(std::string(LLM_RECORDED_FOLDER) + "/" + name);
  EXPECT_TRUE(file.is_open()) << name;
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

inline std::vector<std::string> ReadRecordedLines(const std::string& name) {
  std::istringstream content(ReadRecorded(name));
  std::vector<std::string> lines;
  for (std::string line; std::getline(content, line);) lines.push_back(line);
  EXPECT_FALSE(lines.empty()) << name;
  return lines;
}

}  // namespace llmctl
