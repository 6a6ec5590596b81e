#include "tests/fuzz/target.h"

#include <iterator>
#include <utility>

#include "tests/fuzz/contract_targets.h"
#include "tests/fuzz/data_targets.h"
#include "tests/fuzz/dedup_targets.h"
#include "tests/fuzz/language_targets.h"
#include "tests/fuzz/perplexity_targets.h"
#include "tests/fuzz/pii_targets.h"
#include "tests/fuzz/read_targets.h"

namespace llmctl::fuzz {

std::vector<Target> AllTargets() {
  std::vector<Target> all = DataTargets();
  for (std::vector<Target> more : {ContractTargets(), DedupTargets(), ReadTargets(), LanguageTargets(), PiiTargets(),
                                   PerplexityTargets(), SpecTargets()}) {
    std::move(more.begin(), more.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace llmctl::fuzz
