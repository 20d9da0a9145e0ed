// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/queue_options.h"

#include <algorithm>

#include "base/status_macros.h"
#include "base/text.h"

namespace tensord::sched {
namespace {

absl::Status AtLeast(std::string_view name, const std::optional<int64_t>& value, int64_t least) {
  if (!value.has_value() || *value >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(base::Cat(name, " must be at least ", least, "; was ", *value));
}

absl::Status CheckAllowedSizes(const BatchingParameters& parameters) {
  if (parameters.allowed_batch_sizes.empty()) return absl::OkStatus();
  int64_t before = 0;
  for (const int64_t size : parameters.allowed_batch_sizes) {
    if (size <= before) {
      return absl::InvalidArgumentError(base::Cat(
          "allowed_batch_sizes must be positive and ascending; ", size, " follows ", before));
    }
    before = size;
  }
  const std::optional<int64_t> rows_max = parameters.ExecutionRowsMax();
  if (rows_max.has_value() && before != *rows_max) {
    return absl::InvalidArgumentError(
        base::Cat("Last entry in allowed_batch_sizes must match max_batch_size; last entry was ",
                  before, "; expected ", *rows_max));
  }
  return absl::OkStatus();
}

SignatureRows::Open OpenRows(const tensor::Endpoint& endpoint) {
  if (!endpoint.dense) return SignatureRows::Open::kNo;
  if (endpoint.shape.unknown_rank) return SignatureRows::Open::kMaybe;
  const bool open = !endpoint.shape.dims.empty() && endpoint.shape.dims.front() == -1;
  return open ? SignatureRows::Open::kYes : SignatureRows::Open::kNo;
}

}  // namespace

SignatureRows RowsOf(const tensor::Signature& signature) {
  SignatureRows rows{.inputs = signature.inputs.size(), .open = SignatureRows::Open::kYes};
  if (signature.inputs.empty()) rows.open = SignatureRows::Open::kNo;
  for (const auto* endpoints : {&signature.inputs, &signature.outputs}) {
    for (const tensor::Endpoint& endpoint : *endpoints) {
      rows.open = std::min(rows.open, OpenRows(endpoint));
    }
  }
  return rows;
}

std::vector<SignatureRows> RowsOf(const tensor::SignatureList& signatures) {
  std::vector<SignatureRows> rows;
  for (const tensor::Signature& signature : signatures) rows.push_back(RowsOf(signature));
  return rows;
}

std::optional<int64_t> BatchingParameters::ExecutionRowsMax() const {
  if (enable_large_batch_splitting && max_execution_batch_size.has_value()) {
    return max_execution_batch_size;
  }
  return max_batch_size;
}

absl::Status CheckBatching(const BatchingParameters& parameters) {
  RETURN_IF_ERROR(AtLeast("max_batch_size", parameters.max_batch_size, 1));
  RETURN_IF_ERROR(AtLeast("num_batch_threads", parameters.num_batch_threads, 1));
  RETURN_IF_ERROR(AtLeast("max_execution_batch_size", parameters.max_execution_batch_size, 1));
  RETURN_IF_ERROR(AtLeast("max_enqueued_batches", parameters.max_enqueued_batches,
                          parameters.enable_large_batch_splitting ? 1 : 0));
  if (parameters.batch_timeout.value_or(absl::ZeroDuration()) < absl::ZeroDuration()) {
    return absl::InvalidArgumentError("batch_timeout_micros must not be negative");
  }
  return CheckAllowedSizes(parameters);
}

}  // namespace tensord::sched
