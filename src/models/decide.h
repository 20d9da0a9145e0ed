// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "models/world.h"

namespace tensord::models {

// A version that exists should live: a record for it, or its ended record from the beginning.
struct Begin {
  std::string model;
  FoundVersion found;
};
// A version's files changed before it was loaded, or before it is loaded again after a death: it
// goes on as a new generation.
struct Renew {
  std::string model;
  uint64_t generation = 0;
  FoundVersion found;
};
// A worker is to load a version.
struct Start {
  fleet::WorkerKey key;
  uint64_t generation = 0;
};
// One worker too many.
struct Stop {
  fleet::WorkerKey key;
};
// A version is not wanted any more: all its workers stop.
struct Retire {
  std::string model;
  int64_t number = 0;
  uint64_t generation = 0;
};
// A version does not fit the memory and ends before it is loaded.
struct Refuse {
  std::string model;
  int64_t number = 0;
  uint64_t generation = 0;
  absl::Status status;
};
using Action = std::variant<Begin, Renew, Start, Stop, Retire, Refuse>;

// "begin m/2", "renew m/2", "start m/2#0", "stop m/1#1", "retire m/1", "refuse m/2", for tests and
// logs.
std::string ToString(const Action& action);
const std::string& ModelOf(const Action& action);

struct Decision {
  std::vector<Action> actions;
  absl::Time wake = absl::InfiniteFuture();  // Decide again by then, even if nothing happens.
};

// What to do now so that what is comes nearer to what should be.
//
// The rules, in the order in which they are applied to a model:
//   * Wanted are the versions that the policy chooses among those that are complete on disk or
//   serve
//     already, without those that failed (version_policy.h). So a version that keeps failing makes
//     the next lower one wanted, from disk if need be.
//   * Nothing is wanted and nothing serves, because all failed: those whose failure may pass are
//     tried again after a pause.
//   * A version that is not wanted goes, except that as many as are wanted and do not serve yet are
//     kept; all are kept when nothing that could take over is known. A load that began is finished
//     unless something better serves already.
//   * Missing workers are started. Restarts of what died first; then the model with the fewest
//   loads
//     in flight, what does not serve at all, the highest version.
//   * At most kLoadsInFlight first loads at a time (those older than kLoadStandsAside do not
//   count),
//     at most kLoadsInFlightMax loads in all.
//   * What does not fit the ledger is refused, unless a worker is stopping: its memory may do.
//
// REQUIRES: the caller applies all actions (observe.h) and decides again until there are none.
Decision Decide(const Desired& desired, const Observed& observed, absl::Time now);

}  // namespace tensord::models
