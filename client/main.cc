#include <cstdlib>

#include "client/grammar.h"

int main(int argc, char** argv) {
  const char* address = std::getenv("LLMCTL_COORDINATOR");
  return llmctl::client::RunCommandLine(argc, argv, address == nullptr ? "" : address);
}
