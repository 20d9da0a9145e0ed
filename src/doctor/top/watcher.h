// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "doctor/machine.h"
#include "doctor/top/view.h"

namespace tensord::doctor {

struct WatchPlan {
  std::string server;  // "host:port" of a REST port; empty: none.
  std::string metrics_path = "/monitoring/prometheus/metrics";
  std::string ranks_file;  // A training job's status; empty: none.
};

// Looks again and again; what it shows is what happened between two looks.
// Threads: one at a time. Lifetime: the clock outlives it.
class Watcher {
 public:
  Watcher(Machine machine, WatchPlan plan, const base::Clock* clock);
  // The first look has no rates.
  View Look();

 private:
  void ReadServer(View* view);
  void ReadRanks(View* view) const;

  const Machine machine_;
  const WatchPlan plan_;
  const base::Clock* const clock_;
  const std::unique_ptr<nvml::Library> library_;
  const int cpus_;
  HostCounters host_;
  ServerCounters server_;
  bool looked_ = false;
};

// Sleeps in poll: a byte on stdin (with `keys`), or a signal, ends it early. True: a key came.
bool Pause(absl::Duration duration, bool keys);

}  // namespace tensord::doctor
