// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "base/limits.h"
#include "sched/model_bytes.h"
#include "tensor/signature.h"

namespace tensord::sched {

// TensorFlow Serving's BatchingParameters, as an operator wrote them. Each is honoured exactly
// where it is set; what is not set, the scheduler decides. REQUIRES: config/ checked them.
struct BatchingParameters {
  std::optional<int64_t> max_batch_size = {};  // Rows of one call and, without splitting, a batch.
  std::optional<absl::Duration> batch_timeout =
      {};  // A part-full batch leaves when its oldest is this.
  std::optional<int64_t> max_enqueued_batches = {};  // Per signature; 0 counts as 1.
  std::optional<int64_t> num_batch_threads = {};     // Batches that run at once.
  std::vector<int64_t> allowed_batch_sizes = {};  // Ascending; batches are padded up to the next.
  bool pad_variable_length_inputs = false;        // Inner dims are padded to the batch's largest.
  bool enable_large_batch_splitting = false;      // Calls over the execution size run in pieces.
  std::optional<int64_t> max_execution_batch_size = {};  // With splitting; else max_batch_size.

  // The largest batch that is run, where these say so.
  std::optional<int64_t> ExecutionRowsMax() const;
};

// What the scheduler has to know about a signature.
struct SignatureRows {
  enum class Open : uint8_t {
    kNo,     // Some input or output has a fixed leading dim, is a scalar, or is not dense.
    kMaybe,  // The rank of some input or output is not known; the others are open.
    kYes,    // All inputs and outputs are dense and have an open leading dim.
  };
  size_t inputs = 0;
  Open open = Open::kNo;
  bool apart = true;  // False: a request's rows may change what another's come to.
};
SignatureRows RowsOf(const tensor::Signature& signature);
std::vector<SignatureRows> RowsOf(const tensor::SignatureList& signatures);

// What happened to one run, for histograms.
struct RunEvent {
  int signature = 0;
  int64_t calls = 0;
  int64_t rows = 0;  // Without padding; 0 when the calls have no rows.
  int64_t pad_rows = 0;
  absl::Duration run_time = {};
  bool ok = false;
};

struct QueueOptions {
  std::string model = {};                      // For words in messages.
  int64_t version = 0;                         // Likewise.
  std::vector<SignatureRows> signatures = {};  // RowsOf the model's list.
  // The graph writes variables or tables: one run at a time, no batching, no second
  // run of anything.
  bool stateful = false;
  std::optional<BatchingParameters> batching = {};  // Set: an operator asked for batching.
  bool rows_promised = false;  // An operator says that rows do not depend on each other.

  int64_t rows_max = limits::kBatchRowsMax;  // 1 turns batching off.
  // Beyond rows_max, up to limits::kShortBatchRowsMax, where runs are known to be short.
  bool rows_may_grow = false;
  uint64_t bytes_max = limits::kBatchBytesMax;
  int64_t queued_calls_max = limits::kQueuedCallsMax;
  uint64_t queued_bytes_max = limits::kQueuedBytesMax;
  // Of the model, whose versions share it. Null: no limit besides this queue's own.
  std::shared_ptr<ModelBytes> model_bytes = {};
  // A run that takes longer costs its worker, whatever deadlines its calls have.
  absl::Duration run_timeout = absl::InfiniteDuration();

  absl::AnyInvocable<void(const RunEvent&)> on_run = {};  // May be null. Must not call the queue.
};

}  // namespace tensord::sched
