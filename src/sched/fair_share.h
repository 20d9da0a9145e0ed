// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/time/time.h"

// Fair shares of one queue among its clients. Costs are executor time.
namespace tensord::sched {

// Which client a call comes from, as far as fairness cares: a bucket. Clients that share one by
// chance share a share.
using ClientBucket = uint32_t;  // Below limits::kClientBuckets.

// Max-min fairness: the most that a client may have so that nobody who asks for less goes short:
// the highest level with sum(min(demand, level)) <= capacity. Infinite when all demands fit.
double WaterLevel(std::span<const double> demands, double capacity);

// What the clients of one criticality class asked for and got lately (the last second counts most),
// and how much work of theirs waits.
//
// Two uses. At admission, while there is pressure: who asked for more than its share may fill only
// a part of the queue, so that there is always room for the others. In the order of service: calls
// that could wait long are served as if each client had a queue of its own and the queues took
// turns; a client's hundredth waiting call comes after another one's first.
//
// Allocates nothing before the first call that has to wait.
class FairShare {
 public:
  // A call that has to wait came, whether it is admitted or not.
  void Offer(ClientBucket client, absl::Duration cost, absl::Time now);
  void Admit(absl::Duration cost, absl::Time now);

  // It asked for more than its share. False while everybody gets all, or there is but one client.
  bool OverShare(ClientBucket client, absl::Time now);

  // The turn of a call of this client that came now: behind what waits of the same client, and in
  // line with the others' (start-time fair queueing). In the time of the clock that stands at the
  // turn of what was served last, and is set to now when nobody waits.
  absl::Time Turn(ClientBucket client, absl::Time now) const;
  // A call of it waits from now on; no longer.
  void Wait(ClientBucket client, absl::Duration cost, absl::Time now);
  void Leave(ClientBucket client);
  // A call that had this turn is being served.
  void Serve(absl::Time turn) { clock_ = std::max(clock_, turn); }

 private:
  struct Client {
    double offered = 0;                      // Faded; in seconds, times Weight().
    absl::Time turn = absl::InfinitePast();  // Of its next call, while one waits.
    int64_t waiting = 0;
  };

  // Instead of fading all the time, what is new weighs more.
  double Weight(absl::Time now);
  void Make();

  std::vector<Client> clients_;
  int64_t waiting_ = 0;  // Of all clients.
  absl::Time clock_ = absl::InfinitePast();
  double admitted_ = 0;  // As `offered`.
  absl::Time weight_since_;
  double level_ = 0;  // Likewise; of the last look.
  int active_ = 0;    // Clients with a demand worth the name.
  absl::Time looked_ = absl::InfinitePast();
};

}  // namespace tensord::sched
