// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/client.h"
#include "bench/process_cpu.h"

namespace tensord::bench {

// A closed loop: every connection keeps so many requests out, and sends the next when one is
// answered.
struct LoadPlan {
  Target target;
  bool rest = false;
  int connections = 1;
  int in_flight = 1;  // In all, shared out evenly; at least one a connection.
  absl::Duration warm_up = absl::Seconds(1);
  absl::Duration duration = absl::Seconds(5);
  int server_pid = 0;  // Whose process tree's CPU time is read; 0: nobody's.
};

// What was measured after the warm-up.
struct LoadResult {
  absl::Duration duration;
  uint64_t answered = 0;
  uint64_t failed = 0;
  std::map<std::string, uint64_t> reasons;  // Of the failures; at most kReasonsMax different ones.
  uint64_t answer_bytes = 0;
  std::vector<uint32_t> latencies_us;  // Sorted; of the answered ones.
  CpuByRole cpu;                       // Of the server, in that time.
  absl::Duration client_cpu;           // Of this process.

  double rate() const;  // Answered a second.
  // REQUIRES: 0 <= share <= 1. Zero when nothing was answered.
  absl::Duration Quantile(double share) const;
  // CPU microseconds a request, over all roles of the server.
  double CpuMicroseconds() const;
};

// Progress, once a second: seconds passed, answered so far.
using Progress = absl::AnyInvocable<void(absl::Duration passed, uint64_t answered)>;

// Runs the load in this thread. UNAVAILABLE when nobody listens.
absl::StatusOr<LoadResult> RunLoad(const LoadPlan& plan, Progress progress);

// A few lines for people.
std::string TextReport(const LoadPlan& plan, const LoadResult& result);
// One JSON object, every number with its unit in its name.
std::string JsonReport(const LoadPlan& plan, const LoadResult& result);

}  // namespace tensord::bench
