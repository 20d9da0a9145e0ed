// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "bench/arrivals.h"
#include "bench/client.h"
#include "bench/mix.h"
#include "bench/process_cpu.h"
#include "bench/tally.h"

namespace tensord::bench {

// One kind of request, ready to be sent.
struct Kind {
  std::string name = {};
  double weight = 1;
  absl::Duration deadline = absl::InfiniteDuration();
  std::vector<Request> variants = {};  // Sent in turn.
};

// What is sent. Never changes, so all threads share it.
struct Mix {
  std::vector<Kind> kinds = {};
};

// One measurement: how the mix is sent, and for how long.
// Lifetime: address and mix outlive it.
struct LoadPlan {
  const Address* address = nullptr;
  const Mix* mix = nullptr;
  bool rest = false;
  bool one_shot = false;
  Pacing pacing = Pacing::kClosed;
  double rate = 0;  // Open loop: requests a second.
  int threads = 1;  // Of this program; connections, requests and rate are shared out.
  int connections = 1;
  int in_flight = 1;      // Closed loop: requests out at a time. Open: the most that may be.
  bool deadlines = true;  // Whether the kinds' deadlines count.
  absl::Duration warm_up = absl::Seconds(1);
  absl::Duration duration = absl::Seconds(5);
  std::optional<uint64_t> requests = {};  // Measure so many instead of a time.
  uint64_t seed = 1;
  std::vector<int> server_pids = {};  // Whose process trees' CPU time is read.
};

// A second of a measurement.
struct Second {
  uint64_t answered = 0;
  uint64_t failed = 0;
  uint64_t out = 0;        // Requests in flight at its end.
  Histogram latency = {};  // Of what was answered in it.
};

struct SecondSummary {
  uint64_t answered = 0;
  uint64_t failed = 0;
  uint64_t out = 0;
  int64_t p50_ns = 0;
  int64_t p99_ns = 0;
};

// What was measured after the warm-up.
struct LoadResult {
  absl::Duration duration = {};
  Tally tally = {};
  uint64_t sent = 0;               // All that ever went out: before, during and after, too.
  uint64_t answers_in_window = 0;  // Of any kind, while CPU time was read.
  CpuByRole cpu = {};              // Of the servers, in that time.
  absl::Duration client_cpu = {};  // Of this program's threads.
  std::vector<SecondSummary> seconds = {};
  std::string ended_early = {};  // Why, when it did: the rest is what was measured until then.

  double rate() const;  // Answered a second.
  // CPU microseconds a request, over all roles of the server.
  double CpuMicroseconds() const;
  double PerAnswer(absl::Duration cpu) const;
  // The generator's own threads were busy all the time.
  bool GeneratorWasTheLimit(const LoadPlan& plan) const;
};

}  // namespace tensord::bench
