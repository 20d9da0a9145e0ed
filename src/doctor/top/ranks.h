// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tensord::doctor {

// A process of a training job, as a status file tells.
struct Rank {
  std::string name;  // "worker/0"
  double step = -1;  // -1, as below: not told.
  double steps_per_second = -1;
  double input_wait = -1;         // Share of the step time, 0 to 1.
  std::string input_stage = {};   // The slowest of its input, as tf.data names it; "": not told.
  double input_stage_share = -1;  // Of all stages' time.
  double all_reduce = -1;         // Share of the step time in exchanging gradients.
  double all_reduce_bytes = -1;   // Of them, a step.
};

// The form is the one of docs/doctor.md, all but the name optional. INVALID_ARGUMENT for anything
// else.
absl::StatusOr<std::vector<Rank>> ParseRanks(std::string_view json);

}  // namespace tensord::doctor
