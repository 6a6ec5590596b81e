#include "client/output/fields.h"

#include <algorithm>

namespace llmctl::client {
namespace {

// Values of most views begin in one column, whatever is left out.
constexpr size_t kHeadingWidth = 12;

}  // namespace

void PrintFields(const Fields& fields, std::ostream& out) {
  for (const auto& [heading, value] : fields) {
    if (value.empty()) continue;
    size_t gap = kHeadingWidth - std::min(heading.size(), kHeadingWidth - 1);
    out << heading << ":" << std::string(gap, ' ') << value << "\n";
  }
}

}  // namespace llmctl::client
