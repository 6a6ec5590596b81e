// Which build a program is: its version and the commit it was made from ("0.1.0+8a67c6f4e2b1"; a "+" at the end says
// that files were changed since the commit). Hosts of a cluster that is being upgraded are told apart by it.
#pragma once

#include <string>

namespace llmctl {

std::string BuildId();

}  // namespace llmctl
