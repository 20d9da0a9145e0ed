// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

// More of limits.h: what belongs to scheduling alone, so that a change here builds little anew.
namespace tensord::limits {

// sched/
inline constexpr int64_t kShortBatchRowsMax =
    256;  // A small MLP has 91 % of its rate; at 64, 72 %.
inline constexpr absl::Duration kShortBatchRun =
    absl::Milliseconds(5);                     // For so many others no call waits longer.
inline constexpr size_t kClientBuckets = 256;  // Clients of a version are told apart by; 6 KiB.
inline constexpr size_t kPoisonsMax = 64;      // Calls that ended workers, kept a version.
inline constexpr absl::Duration kPoisonKept =
    absl::Minutes(1);  // Then it may end one more worker; as kDeathsWindow: never a crash loop.
inline constexpr int kUnexplainedDeathsMax =
    3;  // In a row, the last alone: then it is the call and not the machine.
inline constexpr int kAbandonedTimes = 100;  // Of a run's usual time; no honest one takes longer.
inline constexpr absl::Duration kAbandonedMin = absl::Seconds(10);  // What a busy machine may add.

// worker/: what a scheduler wants to know of a model before it serves
inline constexpr absl::Duration kWarmUpTimingMax =
    absl::Seconds(2);  // Of runs made only to be timed, a worker; a load must not wait for more.
inline constexpr size_t kTimedRunsMax =
    1024;  // Of a worker's description: 16 signatures, 64 sizes.

// serve/: loads
inline constexpr absl::Duration kLiteLoadWaitMax =
    absl::Minutes(2);  // Its files are 2 GiB at most; a damaged one can keep LiteRT for ever.

// serve/: run times, kept between two lives
inline constexpr size_t kRunTimesFileBytesMax = 4 << 20;  // 20,000 lines; ours are under 200 bytes.
inline constexpr size_t kRunTimesMax = 20'000;            // Lines: 1,000 models, 20 sizes each.
inline constexpr absl::Duration kRunTimesSaveEvery = absl::Minutes(1);  // A hint may be that old.

}  // namespace tensord::limits
