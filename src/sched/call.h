// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "sched/fair_share.h"
#include "tensor/request.h"
#include "tensor/tensor.h"

namespace tensord::sched {

using CallId = uint64_t;  // Never used twice in a queue's life; 0 is never given out.

// What became of one call.
struct CallResult {
  // OK; the model's error; DEADLINE_EXCEEDED; UNAVAILABLE (worker lost, version gone);
  // RESOURCE_EXHAUSTED (shed: see retry_after); INTERNAL (this call ends workers).
  absl::Status status = {};
  // This call's rows of every output, in the signature's order. Empty unless status is OK.
  // Lifetime: as long as `keep` or a copy of it.
  std::vector<tensor::TensorView> outputs = {};
  std::shared_ptr<const void> keep = {};  // Owns the bytes of the outputs, shared with batch mates.
  absl::Duration queued = {};       // From arrival until a worker got it, or until the answer.
  absl::Duration run_time = {};     // Of the whole batch, inside the runtime.
  int64_t batch_rows = 0;           // Rows of that batch, padding included; 0: it never ran.
  absl::Duration retry_after = {};  // A hint to a client that was refused; zero: none.
};

// A call of which only the head has been read.
struct EarlyCall {
  uint64_t bytes = 0;  // Of its body.
  tensor::Criticality criticality = tensor::Criticality::kCritical;
  bool retry = false;
  ClientBucket client = 0;
  absl::Time arrived = {};
  absl::Time deadline = absl::InfiniteFuture();
};

// One call, matched with its signature and checked against it.
struct Call {
  int signature = 0;
  // Signatures to run with it on the same inputs, in one run; the outputs are those of all, in this
  // order. Such a call shares its run with no other.
  std::vector<int> more_signatures = {};
  // In the signature's order, one per input.
  std::vector<tensor::TensorView> inputs = {};
  // Owns what `inputs` points into. A call can be answered (at its deadline) or cancelled while a
  // worker still holds its tensors: this is let go only after the worker is through with them. May
  // be null when the bytes outlive the queue and its workers anyway.
  std::shared_ptr<const void> keep = {};
  uint64_t received_bytes = 0;  // Of the inputs, that were copied when they came; for the counter.
  int64_t rows = -1;  // The leading dim, equal in all inputs; -1 when there is none: runs alone.
  absl::Time arrived = {};
  absl::Time deadline = absl::InfiniteFuture();
  tensor::Criticality criticality = tensor::Criticality::kCritical;
  bool retry = false;       // The client has tried before (grpc-previous-rpc-attempts > 0).
  ClientBucket client = 0;  // Whose it is, for fair shares.
  // Runs exactly once unless the call is cancelled; never inside Submit. It may call the queue, and
  // even destroy it.
  absl::AnyInvocable<void(CallResult)> done = {};
};

}  // namespace tensord::sched
