// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "tensor/tensor.h"

// Tensors of different inner dims in one batch, where an operator asked for it
// (pad_variable_length_inputs): each is padded at the end of each dim but the first, up to the
// batch's largest, with its own first element.
namespace tensord::sched {

using CallInputs = std::span<const tensor::TensorView>;

// True for inputs that can be padded: each has rows and, so that there is something to pad with,
// elements.
bool CanPad(CallInputs inputs);

// How many of these calls, from the first on, may be padded to each other: at least one, and then
// as long as what the batch takes is at most limits::kPaddedBytesMax, or twice what came. One odd
// call cannot make gigabytes of its neighbours. REQUIRES: for all calls CanPad; the same dtypes and
// ranks.
size_t PaddedPrefix(std::span<const CallInputs> calls);

// Pads the pieces of one input to their common dims; new bytes are kept by `keeps`. Fixed-width
// pieces that have these dims stay as they are.
// REQUIRES: CanPad, and PaddedPrefix took them all; well-formed packed strings.
void PadPieces(std::span<tensor::TensorView> pieces,
               std::vector<std::shared_ptr<const void>>* keeps);

}  // namespace tensord::sched
