// Ranks as threads of one process: the reference backend of the tests.
//
// The last rank to arrive does the whole operation on everybody's buffers, in rank order, and lets the others
// go: sums are the same bits on every run. A rank whose backend is destroyed is gone, as a dead process is: whoever
// waits for it gets Unavailable.
#pragma once

#include <memory>
#include <vector>

#include "worker/engine/comm/collective.h"

namespace llmctl::engine::comm {

// One backend per rank, each to be used by a thread of its own.
std::vector<std::unique_ptr<Backend>> CreateInProcessGroup(int size);

}  // namespace llmctl::engine::comm
