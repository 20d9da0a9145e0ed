// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "config/batching_parameters.h"

#include <algorithm>

#include "base/status_macros.h"
#include "base/text.h"
#include "config/text_proto.h"

namespace tensord::config {
namespace {

namespace tfs = tensorflow::serving;

constexpr int64_t kRowsMax = 1 << 30;  // Far above any batch; sums of a few stay within 64 bits.

absl::Status CheckRange(std::string_view what, const std::optional<int64_t>& value, int64_t min,
                        int64_t max) {
  if (!value || (*value >= min && *value <= max)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      base::Cat(what, " must be from ", min, " to ", max, ", not ", *value));
}

absl::Status CheckRanges(const BatchingParameters& parameters) {
  constexpr int64_t kMicrosecondsMax = int64_t{3600} * 1'000'000;  // Nobody waits an hour.
  RETURN_IF_ERROR(CheckRange("max_batch_size", parameters.max_batch_size, 1, kRowsMax));
  RETURN_IF_ERROR(
      CheckRange("batch_timeout_micros", parameters.batch_timeout_micros, 0, kMicrosecondsMax));
  RETURN_IF_ERROR(CheckRange("max_enqueued_batches", parameters.max_enqueued_batches, 1, kRowsMax));
  RETURN_IF_ERROR(CheckRange("num_batch_threads", parameters.num_batch_threads, 1, kRowsMax));
  return CheckRange("max_execution_batch_size", parameters.max_execution_batch_size, 1, kRowsMax);
}

absl::Status SetAllowedSizes(const tfs::BatchingParameters& file, BatchingParameters* parameters,
                             std::vector<std::string>* warnings) {
  std::vector<int64_t> sizes(file.allowed_batch_sizes().begin(), file.allowed_batch_sizes().end());
  if (sizes.empty()) return absl::OkStatus();
  for (const int64_t size : sizes) {
    RETURN_IF_ERROR(CheckRange("allowed_batch_sizes", size, 1, kRowsMax));
  }
  const std::optional<int64_t> rows_max = parameters->max_batch_size;
  const bool largest_run = sizes.back() == parameters->max_execution_batch_size;
  if (rows_max && sizes.back() != *rows_max && !largest_run) {
    return absl::InvalidArgumentError(
        base::Cat("Last entry in allowed_batch_sizes must match max_batch_size; last entry was ",
                  sizes.back(), "; expected ", *rows_max));
  }
  if (!std::ranges::is_sorted(sizes)) {
    // The original takes the first that is large enough, in the file's order.
    if (std::ranges::max(sizes) > sizes.back()) {
      return absl::InvalidArgumentError(base::Cat("allowed_batch_sizes must ascend; ",
                                                  std::ranges::max(sizes), " comes before ",
                                                  sizes.back(), ", the last"));
    }
    warnings->push_back("allowed_batch_sizes do not ascend; they are taken in ascending order");
    std::ranges::sort(sizes);
  }
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  parameters->allowed_batch_sizes = std::move(sizes);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BatchingParameters> ToBatchingParameters(const tfs::BatchingParameters& file,
                                                        std::vector<std::string>* warnings) {
  BatchingParameters parameters;
  if (file.has_max_batch_size()) parameters.max_batch_size = file.max_batch_size().value();
  if (file.has_batch_timeout_micros()) {
    parameters.batch_timeout_micros = file.batch_timeout_micros().value();
  }
  parameters.enable_large_batch_splitting = file.enable_large_batch_splitting().value();
  parameters.pad_variable_length_inputs = file.pad_variable_length_inputs();
  if (file.has_max_enqueued_batches()) {
    // The original takes 0 for 1, except with splitting.
    const int64_t value = file.max_enqueued_batches().value();
    const bool one = value == 0 && !parameters.enable_large_batch_splitting;
    parameters.max_enqueued_batches = one ? 1 : value;
  }
  if (file.has_num_batch_threads()) parameters.num_batch_threads = file.num_batch_threads().value();
  if (file.has_max_execution_batch_size()) {
    if (parameters.enable_large_batch_splitting) {
      parameters.max_execution_batch_size = file.max_execution_batch_size().value();
    } else {
      warnings->push_back(
          "max_execution_batch_size has no effect without enable_large_batch_splitting");
    }
  }
  RETURN_IF_ERROR(CheckRanges(parameters));
  if (parameters.max_batch_size && parameters.max_execution_batch_size &&
      *parameters.max_execution_batch_size > *parameters.max_batch_size) {
    // A call has at most max_batch_size rows, and the original runs none larger then.
    return absl::InvalidArgumentError(
        base::Cat("max_execution_batch_size must be at most max_batch_size (",
                  *parameters.max_batch_size, "), not ", *parameters.max_execution_batch_size));
  }
  RETURN_IF_ERROR(SetAllowedSizes(file, &parameters, warnings));
  return parameters;
}

absl::StatusOr<BatchingParameters> ParseBatchingParameters(std::string_view text,
                                                           std::string_view where,
                                                           Warnings* warnings) {
  tfs::BatchingParameters file;
  RETURN_IF_ERROR(ParseTextProto(text, where, &file));
  Warnings own;
  absl::StatusOr<BatchingParameters> parameters = ToBatchingParameters(file, &own);
  if (!parameters.ok()) return base::WithContext(parameters.status(), base::Cat(where, ": "));
  if (warnings != nullptr) {
    for (const std::string& warning : own) warnings->push_back(base::Cat(where, ": ", warning));
  }
  return parameters;
}

}  // namespace tensord::config
