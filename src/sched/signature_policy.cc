// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/signature_policy.h"

#include <algorithm>
#include <limits>

#include "base/sched_limits.h"

namespace tensord::sched {
namespace {

constexpr int64_t kProbeEvery = 64;  // Runs a larger batch is tried after; costs 1.5 % of nothing.
constexpr int64_t kProbeFactor = 2;

// The rows that the operator set, where he set any.
std::optional<int64_t> RowsSet(const QueueOptions& options) {
  if (!options.batching.has_value()) return std::nullopt;
  if (const auto rows = options.batching->ExecutionRowsMax(); rows.has_value()) return rows;
  if (options.batching->allowed_batch_sizes.empty()) return std::nullopt;
  return options.batching->allowed_batch_sizes.back();
}

}  // namespace

SignaturePolicy::SignaturePolicy(const QueueOptions& options, SignatureRows signature)
    : options_(options) {
  // Who asks for batching knows the model; by ourselves we batch only what says that it has rows,
  // and where these were found not to depend on each other.
  const bool asked = options.batching.has_value() || options.rows_promised;
  const auto open =
      options.batching.has_value() ? SignatureRows::Open::kMaybe : SignatureRows::Open::kYes;
  batches_ = signature.open >= open && (asked || signature.apart) && !options.stateful &&
             (options.rows_max > 1 || RowsSet(options).has_value());
}

void SignaturePolicy::StopBatching() {
  batches_ = false;
  refused_batching_ = true;
}

int64_t SignaturePolicy::RowsCap() const {
  if (!batches_) return 1;
  if (const auto rows = RowsSet(options_); rows.has_value()) return *rows;
  const auto line = service_.line();
  if (!line.has_value()) return options_.rows_max;
  const int64_t rows = GainCap(*line, options_.rows_max);
  return rows < options_.rows_max ? rows : GainCap(*line, RowsMax());
}

// What its bytes may be is limited besides; what its outputs may be, by the time that they take.
int64_t SignaturePolicy::RowsMax() const {
  int64_t rows = options_.rows_max;
  if (!options_.rows_may_grow || !service_.line().has_value()) return rows;
  while (2 * rows <= limits::kShortBatchRowsMax &&
         service_.P95(2 * rows).value_or(absl::InfiniteDuration()) <= limits::kShortBatchRun) {
    rows *= 2;
  }
  return rows;
}

BatchLimits SignaturePolicy::Limits() const {
  BatchLimits limits{.together = batches_, .rows_max = RowsCap(), .bytes_max = options_.bytes_max};
  const bool rows_set = RowsSet(options_).has_value();
  if (rows_set) {
    limits.bytes_max = std::numeric_limits<uint64_t>::max();
  } else if (runs_ % kProbeEvery == kProbeEvery - 1) {
    limits.rows_max = std::min(RowsMax(), kProbeFactor * limits.rows_max);
  }
  if (options_.batching.has_value()) {
    limits.wait_max = options_.batching->batch_timeout.value_or(absl::ZeroDuration());
    if (batches_) limits.allowed_rows = options_.batching->allowed_batch_sizes;
  }
  return limits;
}

BatchLimits SignaturePolicy::LoneLimits() const {
  BatchLimits limits{.together = false};
  if (batches_ && options_.batching.has_value()) {
    limits.allowed_rows = options_.batching->allowed_batch_sizes;
  }
  return limits;
}

void SignaturePolicy::Learn(int64_t rows, absl::Duration run_time) {
  ++runs_;
  service_.Add(std::max<int64_t>(1, rows), run_time);
}

std::optional<absl::Duration> SignaturePolicy::LeastRunOf(int64_t rows) const {
  if (!batches_ || !options_.batching.has_value()) return LeastRun(service_, rows, {});
  const BatchingParameters& set = *options_.batching;
  if (set.enable_large_batch_splitting) rows = std::min(rows, RowsCap());
  return LeastRun(service_, rows, set.allowed_batch_sizes);
}

SignatureStats SignaturePolicy::stats() const {
  SignatureStats stats{.batches = batches_,
                       .refused_batching = refused_batching_,
                       .rows_cap = RowsCap(),
                       .samples = service_.samples(),
                       .run_times = service_.Learnt()};
  if (const auto line = service_.line(); line.has_value()) {
    stats.fixed = absl::Seconds(line->fixed);
    stats.per_row = absl::Seconds(line->per_row);
  }
  return stats;
}

}  // namespace tensord::sched
