#include "client/local/local_state.h"

#include <nlohmann/json.hpp>

namespace llmctl::client {
namespace {

using Json = nlohmann::ordered_json;

std::string Text(const Json& object, const char* name) {
  return object.contains(name) && object[name].is_string() ? object[name].get<std::string>() : "";
}

int64_t Number(const Json& object, const char* name) {
  return object.contains(name) && object[name].is_number_integer() ? object[name].get<int64_t>() : 0;
}

}  // namespace

std::string EncodeLocalState(const LocalState& state) {
  Json daemons = Json::array();
  for (const DaemonState& daemon : state.daemons) {
    daemons.push_back({{"name", daemon.name},
                       {"pid", daemon.pid},
                       {"restarts", daemon.restarts},
                       {"lastEnd", daemon.last_end}});
  }
  Json json = {{"pid", state.pid},
               {"workers", state.workers},
               {"devicesPerWorker", state.devices_per_worker},
               {"startTime", state.start_time},
               {"daemons", daemons}};
  return json.dump(2) + "\n";
}

absl::StatusOr<LocalState> DecodeLocalState(absl::string_view text) {
  Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("daemons") || !json["daemons"].is_array()) {
    return absl::InvalidArgumentError("expected the state of a local cluster (JSON), found something else");
  }
  LocalState state;
  state.pid = Number(json, "pid");
  state.workers = static_cast<int>(Number(json, "workers"));
  state.devices_per_worker = static_cast<int>(Number(json, "devicesPerWorker"));
  state.start_time = Number(json, "startTime");
  for (const Json& daemon : json["daemons"]) {
    state.daemons.push_back({Text(daemon, "name"), Number(daemon, "pid"),
                             static_cast<int>(Number(daemon, "restarts")), Text(daemon, "lastEnd")});
  }
  return state;
}

}  // namespace llmctl::client
