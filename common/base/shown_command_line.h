// What ps shows of this process.
//
// A process that takes on a job without a new program (a standby) keeps the arguments that it was started with. So that
// people, and who looks for a job's processes, see what it does now, it writes over them: the kernel shows the memory
// in which a program's arguments lie. There is as much room as the first arguments took; what is longer is cut.
//
// Before other threads may look at argv.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace llmctl {

class ShownCommandLine {
 public:
  // main's own; outlives this object, and is not to be used after Replace().
  ShownCommandLine(int argc, char** argv);

  void Replace(const std::vector<std::string>& arguments);

 private:
  char* const begin_;
  size_t room_ = 0;  // with the last zero byte
};

}  // namespace llmctl
