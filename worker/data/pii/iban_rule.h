// Account numbers by ISO 13616: two letters, two check digits, and what the country's banks use, in one or in fours.
#pragma once

#include <cstddef>

#include "worker/data/pii/text_scan.h"

namespace llmctl::data {

// "DE89" begins at `begin`.
void FindIban(const TextScan& scan, size_t begin);

}  // namespace llmctl::data
