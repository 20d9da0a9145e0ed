// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/queue_options.h"

#include <algorithm>

namespace tensord::sched {
namespace {

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

}  // namespace tensord::sched
