#include "common/diagnosis/rank_view.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "common/base/status.h"
#include "common/json/strict_json.h"

namespace llmctl::diagnosis {
namespace {

using nlohmann::json;

json Encode(const CollectivePosition& position) {
  return {{"group", position.group}, {"number", position.number}, {"operation", position.operation},
          {"site", position.site},   {"count", position.count},   {"state", position.state},
          {"seconds", position.seconds}};
}

CollectivePosition Decode(ObjectReader reader) {
  CollectivePosition position = {.group = reader.String("group"),
                                 .number = reader.Integer("number", 0),
                                 .operation = reader.String("operation"),
                                 .site = reader.String("site"),
                                 .count = reader.Integer("count", 0),
                                 .state = reader.String("state"),
                                 .seconds = reader.Number("seconds")};
  return position;
}

}  // namespace

std::string EncodeRankView(const RankView& view) {
  json collectives = json::array();
  for (const CollectivePosition& position : view.collectives) collectives.push_back(Encode(position));
  json object = {{"rank", view.rank},
                 {"node", view.node},
                 {"pid", view.pid},
                 {"process", view.process},
                 {"activity", view.activity},
                 {"phase", view.phase},
                 {"where", view.where},
                 {"phase_seconds", view.phase_seconds},
                 {"step", view.step},
                 {"step_seconds", view.step_seconds},
                 {"process_seconds", view.process_seconds},
                 {"collectives", std::move(collectives)},
                 {"exit", view.exit}};
  return JsonText(object, /*indented=*/false);
}

absl::StatusOr<RankView> DecodeRankView(absl::string_view text) {
  LLM_ASSIGN_OR_RETURN(json value, ParseStrictJson(text, "view of a rank"));
  JsonErrors errors;
  ObjectReader reader(value, "view of a rank", errors);
  RankView view = {.rank = static_cast<int>(reader.Integer("rank", 0, 1 << 30)),
                   .node = reader.String("node"),
                   .pid = reader.Integer("pid", 0),
                   .process = reader.String("process"),
                   .activity = reader.String("activity"),
                   .phase = reader.String("phase"),
                   .where = reader.String("where"),
                   .phase_seconds = reader.Number("phase_seconds"),
                   .step = reader.Integer("step", 0),
                   .step_seconds = reader.Number("step_seconds"),
                   .process_seconds = reader.Number("process_seconds")};
  for (ObjectReader& position : reader.Objects("collectives")) view.collectives.push_back(Decode(position));
  view.exit = reader.String("exit");
  if (!errors.status().ok()) return errors.status();
  return view;
}

}  // namespace llmctl::diagnosis
