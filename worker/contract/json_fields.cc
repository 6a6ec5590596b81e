#include "worker/contract/json_fields.h"

namespace llmctl::contract {

// Here and not in the header: parser and serializer cost every source that uses them seconds of compilation.

std::optional<Json> ParseJson(absl::string_view text) {
  Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return std::nullopt;
  return json;
}

std::string DumpJson(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace llmctl::contract
