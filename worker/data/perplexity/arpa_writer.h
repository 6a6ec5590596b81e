// Writes ARPA models (arpa_reader.h has the format): the same bytes for the same n-grams in the same order, and numbers
// in the fewest digits that read back to the same floats.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "worker/data/perplexity/arpa_reader.h"

namespace llmctl::data {

class ArpaWriter {
 public:
  // `counts` of each order, which is how many will be added. A path that ends in .gz is gzip-compressed. The file has
  // a temporary name until Finish; without it nothing is left.
  static absl::StatusOr<std::unique_ptr<ArpaWriter>> Create(const std::string& path,
                                                            const std::vector<uint64_t>& counts);
  ~ArpaWriter();
  ArpaWriter(const ArpaWriter&) = delete;
  ArpaWriter& operator=(const ArpaWriter&) = delete;

  // Lower orders first.
  absl::Status Add(const ArpaNgram& gram);
  // On disk when it returns.
  absl::Status Finish();

 private:
  struct File;
  ArpaWriter(std::string path, const std::vector<uint64_t>& counts, std::unique_ptr<File> file);

  absl::Status Flush();

  const std::string path_;
  const std::vector<uint64_t> counts_;
  std::unique_ptr<File> file_;
  std::string buffer_;
  int order_ = 0;  // that is being written
  uint64_t left_ = 0;
};

}  // namespace llmctl::data
