#include "worker/engine/kernels/attention_plain.h"
#include "worker/engine/kernels/column.h"
#include "worker/engine/kernels/columns.h"
#include "worker/engine/kernels/lanes_plain.h"

namespace llmctl::engine::kernels {

constinit const KernelTable<double> kDoublePlain = MakeColumn<LanesPlain, double, PlainAttention>();

}  // namespace llmctl::engine::kernels
