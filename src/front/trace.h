// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "obs/method.h"

namespace tensord::front {

struct Servable;

// One request's way, noted by whoever has it and read once, when it is over: Service::OnDone.
// Monotonic times; the infinite past where it never got so far.
struct Trace {
  bool grpc = false;
  obs::Method method = obs::Method::kOther;
  std::string model = {};                              // As the client named it.
  std::shared_ptr<const Servable> servable = nullptr;  // The version, once it is found.
  int signature = -1;                                  // Its index there, once it is found.
  absl::Time deadline = absl::InfiniteFuture();        // The client's own.

  uint64_t body_bytes = 0;                         // Of the request's body, inflated.
  absl::Time read = absl::InfinitePast();          // The body is complete.
  absl::Time parsed = absl::InfinitePast();        // On its way to the version's queue.
  absl::Time started = absl::InfinitePast();       // A worker got it.
  absl::Time answered = absl::InfinitePast();      // Its result is back, or why there is none.
  absl::Duration run_time = absl::ZeroDuration();  // Inside the runtime, of the whole batch.
  int64_t rows = 0;                                // Of this call; 0 when it has none.
  int64_t batch_rows = 0;                          // Of the batch it ran in; 0: it did not run.
};

}  // namespace tensord::front
