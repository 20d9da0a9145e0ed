// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "sched/call.h"

namespace tensord::sched {

// Calls that were running when a worker crashed, known again by their content: whoever sends such a
// call once more (clients retry) must not end one worker after the other.
//
// The first crash makes all that ran there suspect: the next such call runs where nothing else
// does. If that one crashes, too, it is poison and refused for kPoisonKept; then it is suspect
// again. If it does not, it is clean. So a call can end two workers, and then one in kPoisonKept,
// which is no crash loop. Costs nothing while no worker has crashed; then a look at each call's
// size, and a hash of those that agree in it.
//
// A death that nobody can explain (SIGKILL, an exit) is no proof: the machine may have been short
// of memory, and of what ran then one call is as likely as the other. It is noted. A second one in
// a row makes the call suspect, a third one, alone in its worker, poison. One run that ends well
// wipes that out.
class PoisonList {
 public:
  enum class Standing : uint8_t { kClean, kNoted, kSuspect, kPoison };

  Standing Find(const Call& call, absl::Time now) const;
  // A worker crashed that was running this call. `alone`: and nothing else.
  void NoteCrash(const Call& call, bool alone, absl::Time now);
  // Likewise, but it is not known why the worker died.
  void NoteDeath(const Call& call, bool alone, absl::Time now);
  // It ran, and its worker lives.
  void Clear(const Call& call);

 private:
  struct Entry {
    int signature = 0;
    uint64_t bytes = 0;
    uint64_t hash = 0;
    int deaths = 0;  // In a row, of all kinds.
    bool suspect = false;
    bool poison = false;
    absl::Time last;  // Death.
  };

  std::vector<Entry>::const_iterator At(const Call& call) const;
  // What is remembered of the call, or nothing yet; it is taken out.
  Entry Take(const Call& call, absl::Time now);
  void Add(const Entry& entry);

  std::vector<Entry> entries_;  // The last kPoisonsMax.
};

}  // namespace tensord::sched
