// Arithmetic of reductions, one element type at a time: shared by the backends that add in rank order, so that
// all of them give the same bits.
#pragma once

#include <cstdint>

#include "worker/engine/comm/collective.h"

namespace llmctl::engine::comm {

int64_t ElementBytes(DataType type);

// into[i] = into[i] op from[i]. bfloat16 is rounded (to nearest even) after each operation. `op` is one of the
// reductions; kByte cannot be reduced.
void Accumulate(Op op, DataType type, void* into, const void* from, int64_t count);

}  // namespace llmctl::engine::comm
