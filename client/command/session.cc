#include "client/command/session.h"

#include <nlohmann/json.hpp>

#include "client/output/json_view.h"
#include "client/output/yaml_text.h"

namespace llmctl::client {

bool Session::PrintStructured(const google::protobuf::Message& message) const {
  if (format == Format::kTable) return false;
  nlohmann::ordered_json json = ToJson(message);
  if (format == Format::kYaml) {
    out << ToYaml(json);
  } else {
    out << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
  }
  return true;
}

}  // namespace llmctl::client
