#include "common/base/shown_command_line.h"

#include <algorithm>
#include <cstring>

namespace llmctl {

ShownCommandLine::ShownCommandLine(int argc, char** argv) : begin_(argv[0]) {
  // One after the other, unless somebody has moved them already.
  for (int i = 0; i < argc && argv[i] == begin_ + room_; ++i) room_ += std::strlen(argv[i]) + 1;
}

void ShownCommandLine::Replace(const std::vector<std::string>& arguments) {
  std::string line;
  for (const std::string& argument : arguments) line.append(argument).push_back('\0');
  if (room_ == 0) return;
  size_t shown = std::min(line.size(), room_ - 1);
  std::memcpy(begin_, line.data(), shown);
  std::memset(begin_ + shown, 0, room_ - shown);
}

}  // namespace llmctl
