// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "doctor/top/ranks.h"

#include "base/status_macros.h"
#include "doctor/parse_json.h"

namespace tensord::doctor {

absl::StatusOr<std::vector<Rank>> ParseRanks(std::string_view json) {
  ASSIGN_OR_RETURN(const google::protobuf::Value value, ParseJson(json));
  const google::protobuf::Value* list = Member(value, "ranks");
  if (list == nullptr || !list->has_list_value()) {
    return absl::InvalidArgumentError("the training status has no list \"ranks\"");
  }
  std::vector<Rank> ranks;
  for (const google::protobuf::Value& item : list->list_value().values()) {
    Rank& rank = ranks.emplace_back();
    rank.name = TextIn(item, "name");
    if (rank.name.empty()) return absl::InvalidArgumentError("a rank has no \"name\"");
    rank.step = NumberIn(item, "step", -1);
    rank.steps_per_second = NumberIn(item, "steps_per_second", -1);
    rank.input_wait = NumberIn(item, "input_wait", -1);
    rank.input_stage = TextIn(item, "input_stage");
    rank.input_stage_share = NumberIn(item, "input_stage_share", -1);
    rank.all_reduce = NumberIn(item, "all_reduce", -1);
    rank.all_reduce_bytes = NumberIn(item, "all_reduce_bytes", -1);
  }
  return ranks;
}

}  // namespace tensord::doctor
