// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tensor/tensor.h"

namespace tensord::fleet {

// What became of one run.
struct RunOutcome {
  // OK; the runtime's error; UNAVAILABLE when the worker died with this run in it.
  absl::Status status;
  bool worker_lost = false;  // The status is the worker's death, not the model's answer.
  // With worker_lost: it crashed, hung or broke the channel's rules, so that one of its runs may be
  // to blame.
  bool crashed = false;
  // With worker_lost: it is not known why. A SIGKILL or an exit may come of a run, but also from
  // the machine, for want of memory, or from an operator. Neither: somebody here ended it.
  bool unexplained = false;
  // In the signature's order (of several, one after the other); the views point into `bytes`,
  // private memory of this process, already checked: dtypes and dims agree with the byte counts,
  // string tables are well-formed.
  std::vector<tensor::TensorView> outputs = {};
  std::shared_ptr<const tensor::Buffer> bytes = {};
  absl::Duration run_time = {};  // Inside the runtime, as the worker measured it.
};

using RunDone = absl::AnyInvocable<void(RunOutcome)>;

// Memory that a request may be received into, so that its tensors are where a worker reads them
// before there is a run.
struct ReceivePlace {
  std::span<std::byte> memory = {};  // Begins at a multiple of 64; empty: there is none to spare.
  std::shared_ptr<const void> lease = {};
};

// One run to be made. Pieces are joined along dim 0 (a run of one piece is taken as it is, whatever
// its rank).
struct RunSpec {
  int signature = 0;
  // Those that run with it, on the same inputs; the outputs are those of all, in this order.
  std::vector<int> more_signatures = {};
  // inputs[i] is the signature's input i: its pieces, in order. All inputs have the same number of
  // pieces; pieces of one input agree in dtype and all dims but the first.
  // Lifetime: the bytes stay until `done` has run.
  std::vector<std::vector<tensor::TensorView>> inputs;
  // When nobody waits any longer. The worker is killed kRunOverrun after that if it still runs.
  absl::Time deadline = absl::InfiniteFuture();
  // Or then, if that is earlier: the operator lets no run of this model take longer.
  absl::Time kill_at = absl::InfiniteFuture();
  // A name for Abandon, of whoever made the run; 0: none.
  uint64_t name = 0;
};

// A loaded, warm worker process as the scheduler sees it.
// Threads: the home loop of its version only.
class Worker {
 public:
  virtual ~Worker() = default;
  // How many more runs it takes now; 0 when it has all it can hold or is dying.
  virtual int Free() const = 0;
  // How many runs it makes at once. It may take more: those are staged in it, behind the others,
  // so that an executor that ends a short run has the next one at hand.
  virtual int Executors() const { return std::numeric_limits<int>::max(); }
  // Tensor bytes copied to and from it in user space so far.
  virtual uint64_t CopiedBytes() const { return 0; }
  // A place in the memory that this worker reads. Where an input of a later run lies in it whole,
  // at a multiple of 64 from its beginning, Submit need not copy it. Empty while all executors have
  // runs, or will have those that are being received. Lifetime: the lease's, whatever becomes of
  // the worker.
  virtual ReceivePlace LeaseForReceive(uint64_t /*bytes*/) { return {}; }
  // Hands one run over. `done` runs exactly once, never inside this call, and also when the worker
  // dies. RESOURCE_EXHAUSTED as an outcome when the tensors fit no segment.
  // REQUIRES: Free() > 0.
  virtual void Submit(RunSpec spec, RunDone done) = 0;
  // Nobody waits for the run of that name any longer: the worker is killed at `kill_at`, if that is
  // earlier than it would be anyway, if it still runs then. Does nothing for a run that is over.
  virtual void Abandon(uint64_t name, absl::Time kill_at) = 0;
};

}  // namespace tensord::fleet
