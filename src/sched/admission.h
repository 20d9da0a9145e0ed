// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "absl/time/time.h"
#include "sched/plan_batch.h"

// Whether a call may enter the queue: a function of its arguments. What cannot be answered in time
// is refused at once, when the client can still do something else with its time.
namespace tensord::sched {

// How full the queue is.
struct Fullness {
  int64_t calls = 0;
  int64_t calls_max = 1;
  uint64_t bytes = 0;
  uint64_t bytes_max = 1;
};

// When a call would be through, as far as is known.
struct Forecast {
  absl::Duration wait = {};  // Until its batch starts.
  absl::Duration run = {};   // Of its batch, nearly always.
};

struct Applicant {
  uint64_t bytes = 0;
  tensor::Criticality criticality = tensor::Criticality::kCritical;
  bool retry = false;
  bool over_share = false;  // Its client asks for more than its share.
  uint64_t salt = 0;        // Any number: clients that are refused together come back apart.
  absl::Time arrived = {};
  absl::Time deadline = absl::InfiniteFuture();
};

enum class Verdict : uint8_t {
  kAdmit,
  kFull,       // No room in calls or bytes.
  kLate,       // Could not be answered in time.
  kShed,       // Its kind is let go first, and the queue is under pressure.
  kOverShare,  // What is left is for clients that ask for less.
};

struct Admission {
  Verdict verdict = Verdict::kAdmit;
  absl::Duration retry_after = {};  // For the refused: when it may look better.
  bool trial = false;  // Admitted although it will be late, to see whether runs still take as long.
};

// `forecast` is nullopt when nothing is known; then only the queue's limits count. For an empty
// queue AdmitAtOnce decides, and this admits everything.
Admission Admit(const Applicant& call, const Fullness& queue,
                const std::optional<Forecast>& forecast, absl::Time now);

// What is known of a run that could start at once.
struct Outlook {
  std::optional<absl::Duration> least = {};  // The shortest such run lately; nullopt: unknown.
  bool idle = false;                         // An executor is.
  absl::Time trial_last = absl::InfinitePast();
};

// For a call that finds nothing waiting. It is admitted unless even a run as short as any lately
// would be too long; then only where an idle executor has not tried so for a while: what runs
// teaches, what is refused does not.
Admission AdmitAtOnce(const Applicant& call, const Outlook& outlook, absl::Time now);

// The queue's share, in calls, bytes and time, that clients over their share may fill.
inline constexpr double kOverSharePressureMax = 0.75;

// The queue's share that calls of this kind may fill: 1 for normal ones.
double PressureMax(tensor::Criticality criticality, bool retry);

// How many batches waiting calls make, in TensorFlow Serving's way of counting: in order, a call
// that does not fit the last one opens another.
struct OpenBatches {
  int64_t batches = 0;
  int64_t room = 0;  // Rows that the last one still takes.
  friend bool operator==(const OpenBatches&, const OpenBatches&) = default;
};
OpenBatches CountBatches(std::span<const Pending> calls, int64_t rows_max);

}  // namespace tensord::sched
