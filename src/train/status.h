// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

// What ranks are doing, for `tensord top` and `tensord advise` to read.
namespace tensord::train {

// How fast a counter grows, over the last ten seconds. Pure.
class StepRate {
 public:
  void Add(absl::Time now, int64_t steps);
  // 0 before two looks.
  double PerSecond() const;

 private:
  std::deque<std::pair<absl::Time, int64_t>> looks_;
};

struct RankStatus {
  std::string name = {};  // "worker/0"
  int64_t step = 0;
  double steps_per_second = 0;
  double input_wait = 0;         // Share of the time, 0 to 1.
  std::string input_stage = {};  // The slowest of its input, as tf.data names it; may be "".
  double input_stage_share = 0;  // Of all stages' time.
  double all_reduce = -1;        // Share of the time; -1: not told, as below.
  double all_reduce_bytes = -1;  // A step.
};

// The form is the one of docs/doctor.md.
std::string StatusJson(const std::vector<RankStatus>& ranks);

// Replaces the file by renaming, so that a reader sees the old or the new one.
absl::Status ReplaceFile(const std::string& path, const std::string& text);

}  // namespace tensord::train
