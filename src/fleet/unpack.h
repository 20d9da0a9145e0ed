// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "channel/record.h"
#include "channel/segment.h"
#include "tensor/signature.h"
#include "tensor/tensor.h"

// Taking outputs out of memory that a worker can still change.
namespace tensord::fleet {

// Where a run was allowed to put its outputs.
struct Region {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct Unpacked {
  // Into `bytes`, in the signatures' order; empty views for outputs that are not dense, or that
  // stayed in the worker.
  std::vector<tensor::TensorView> outputs;
  std::shared_ptr<const tensor::Buffer> bytes;
};

// Copies the outputs of all signatures of the run out, then checks the copies. INVALID_ARGUMENT for
// whatever was not agreed (another count or dtype than the signatures', a place outside the region,
// a broken string table): the worker must be ended.
absl::StatusOr<Unpacked> Unpack(const channel::Completion& completion,
                                std::span<const tensor::Signature* const> signatures,
                                const Region& region, const channel::ResponseSegment& segment);

}  // namespace tensord::fleet
