#include "worker/data/read/read_settings.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "worker/data/read/field_path.h"

namespace llmctl::data {
namespace {

// Room for any character.
constexpr int64_t kDocumentBytesMin = 4;
// Longer lines than twice that are beyond what the JSON parser can count.
constexpr int64_t kDocumentBytesMax = int64_t{1} << 30;
constexpr int64_t kChunkBytesMax = int64_t{1} << 30;
constexpr int64_t kWindowBytesMin = 1024;
constexpr int64_t kWindowBytesMax = int64_t{1} << 31;

void CheckRange(const char* name, int64_t value, int64_t min, int64_t max, std::vector<std::string>& faults) {
  if (value >= min && value <= max) return;
  faults.push_back(absl::StrCat(name, " is ", value, ", expected ", min, " to ", max));
}

void CheckPath(const char* name, const std::string& path, std::vector<std::string>& faults) {
  if (std::string fault = FieldPathFault(path); !fault.empty()) {
    faults.push_back(absl::StrCat(name, " \"", path, "\": ", fault));
  }
}

}  // namespace

absl::Status ReadSettings::Validate() const {
  std::vector<std::string> faults;
  CheckPath("textField", text_field, faults);
  if (!id_field.empty()) CheckPath("idField", id_field, faults);
  CheckRange("documentBytesMax", document_bytes_max, kDocumentBytesMin, kDocumentBytesMax, faults);
  CheckRange("chunkBytes", chunk_bytes, 1, kChunkBytesMax, faults);
  CheckRange("zstdWindowBytesMax", zstd_window_bytes_max, kWindowBytesMin, kWindowBytesMax, faults);
  if (faults.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("read: ", absl::StrJoin(faults, "; ")));
}

}  // namespace llmctl::data
