// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/byte_budget.h"
#include "fleet/worker_key.h"
#include "front/handlers/access_log.h"
#include "models/snapshot.h"
#include "obs/metrics.h"
#include "serve/version_home.h"

namespace tensord::serve {

// What the page shows beside the counters, gathered when it is asked for.
struct PageFacts {
  const models::Snapshot* snapshot = nullptr;
  std::vector<VersionStats> versions;
  std::map<fleet::WorkerKey, int> worker_pids;
  int front_pid = 0;
  int supervisor_pid = 0;
  uint64_t request_bytes_held = 0;
  size_t connections = 0;
  const front::AccessLog* access_log = nullptr;  // Null: off.
};

// Sets the gauges from the facts and prints everything. Threads: the control loop.
std::string MetricsPage(obs::Metrics* metrics, const PageFacts& facts);

}  // namespace tensord::serve
