// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace tensord::fleet {

struct SegmentSizes {
  uint64_t request_bytes = 0;
  uint64_t response_bytes = 0;

  bool operator==(const SegmentSizes&) const = default;
};

// Judges by the runs of a worker how large its standard segments should be. A run that does not fit
// gets segments of its own, which costs as much as copying it: where that happens again and again,
// larger standard ones are worth their memory, and when such runs stay away, they are not.
//
// Pure; time comes in.
class SegmentDemand {
 public:
  // `runs_max`: how many can be out at a time. `now`: when counting starts.
  SegmentDemand(SegmentSizes standard, int runs_max, absl::Time now)
      : standard_(standard), runs_max_(static_cast<uint64_t>(runs_max)), window_began_(now) {}

  // A run needs so many bytes; `own`: it did not fit the segments that there are.
  void Note(uint64_t request_bytes, uint64_t response_bytes, bool own, absl::Time now);

  // The sizes to have from now on, when they differ enough from those that there are: larger after
  // kOwnRunsBeforeGrowth runs that did not fit, smaller when nothing large came for
  // kGrownSegmentsIdle.
  std::optional<SegmentSizes> Wanted(SegmentSizes have, absl::Time now);
  // The sizes were changed, or could not be: counting starts again.
  void Reset(absl::Time now);

 private:
  struct Largest {
    uint64_t request_bytes = 0;
    uint64_t response_bytes = 0;
  };

  void TurnWindow(absl::Time now);
  uint64_t Fitting(uint64_t run_bytes, uint64_t standard) const;

  const SegmentSizes standard_;
  const uint64_t runs_max_;
  int own_runs_ = 0;
  // Of this window of kGrownSegmentsIdle and of the one before.
  Largest largest_;
  Largest largest_before_;
  absl::Time window_began_;
};

}  // namespace tensord::fleet
