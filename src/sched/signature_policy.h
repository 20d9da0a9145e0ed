// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>

#include "sched/plan_batch.h"
#include "sched/queue_options.h"
#include "sched/service_time.h"
#include "sched/stats.h"

namespace tensord::sched {

// How one signature is batched: what its endpoints allow, what the operator set, and what its runs
// have taught.
// Lifetime: the options outlive it.
class SignaturePolicy {
 public:
  SignaturePolicy(const QueueOptions& options, SignatureRows signature);

  bool batches() const { return batches_; }
  // A batch has shown that the model does not keep rows apart: never again.
  void StopBatching();

  // For a lane that may share runs. Now and then a little more than is known to be useful, to learn
  // whether it still is not.
  BatchLimits Limits() const;
  // For a lane of lone calls. Allowed sizes hold there, too, if the signature can be padded.
  BatchLimits LoneLimits() const;
  int64_t RowsCap() const;

  void Learn(int64_t rows, absl::Duration run_time);
  void Seed(const RunTimeHint& hint) { service_.Seed(hint.rows, hint.time); }
  const ServiceTime& service() const { return service_; }
  // The shortest that the run of a call of so many rows has taken lately, or of its first piece.
  std::optional<absl::Duration> LeastRunOf(int64_t rows) const;
  // Of a call that would be late, to learn whether runs still take as long.
  void NoteTrial(absl::Time now) { trial_last_ = now; }
  absl::Time trial_last() const { return trial_last_; }
  SignatureStats stats() const;

 private:
  // The most that it lets a batch have by itself.
  int64_t RowsMax() const;

  const QueueOptions& options_;
  bool batches_ = false;
  bool refused_batching_ = false;
  ServiceTime service_;
  int64_t runs_ = 0;
  absl::Time trial_last_ = absl::InfinitePast();
};

}  // namespace tensord::sched
