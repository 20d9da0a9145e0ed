// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "fleet/worker.h"

// Joining the pieces of a run's inputs along dim 0, straight into shared memory. Pure.
namespace tensord::fleet {

// Where the next tensor may begin.
constexpr uint64_t AlignTensor(uint64_t bytes) { return (bytes + 63) & ~uint64_t{63}; }

// One input of a run as the worker will see it.
struct PackedInput {
  tensor::DType dtype = tensor::DType::kInvalid;
  tensor::Shape shape;
  uint64_t offset = 0;  // From the start of the run's region; a multiple of 64.
  uint64_t bytes = 0;
  bool received = false;  // It is in the segment already: `offset` is from the segment's start.
};

struct PackedRun {
  std::vector<PackedInput> inputs;
  uint64_t bytes = 0;           // Of the whole region.
  uint64_t received_bytes = 0;  // Of what need not be packed.
};

// Where everything goes. INVALID_ARGUMENT when a string table is broken or a joined shape is too
// large. received: by input, the offset in the segment of one that lies there already; may be
// empty. REQUIRES: what RunSpec says of its pieces; a received input has one, of no strings.
absl::StatusOr<PackedRun> LayOut(const RunSpec& spec,
                                 std::span<const std::optional<uint64_t>> received = {});

// Writes all pieces but the received ones. REQUIRES: `region` has plan.bytes; the plan is
// LayOut(spec).
void Pack(const RunSpec& spec, const PackedRun& plan, std::span<std::byte> region);

}  // namespace tensord::fleet
