#include "worker/data/prepare/document_stage.h"

#include <algorithm>
#include <utility>

#include <xxhash.h>

namespace llmctl::data {

ContentHash HashContent(absl::string_view text) {
  XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return {hash.high64, hash.low64};
}

ChunkDocuments DocumentStage::Run(Chunk& chunk) {
  parser_.Parse(chunk, parsed_);
  ChunkDocuments out;
  out.rejects = std::move(parsed_.rejects);
  out.repairs = parsed_.repairs;
  out.records = parsed_.records;
  out.blank_lines = parsed_.blank_lines;
  out.bytes_read = parsed_.file_bytes;
  for (const ParsedDocument& document : parsed_.documents) {
    std::string text;
    absl::string_view normal = normalizer_.Normalize(document.text, text, out.repairs);
    if (!HasContent(normal)) {
      out.rejects.push_back({document.place, Reason::kEmpty, ""});
      continue;
    }
    if (normal.data() != text.data() || normal.size() != text.size()) text = std::string(normal);
    ContentHash hash = HashContent(text);
    out.documents.push_back({document.place, std::move(text), hash});
  }
  auto earlier = [](const Reject& a, const Reject& b) { return a.place.byte < b.place.byte; };
  std::stable_sort(out.rejects.begin(), out.rejects.end(), earlier);
  return out;
}

}  // namespace llmctl::data
