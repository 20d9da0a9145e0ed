// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tensor/request.h"
#include "tensor/tensor.h"

namespace tensord::wire {

// What an answer tells beside its outputs.
struct OipAnswered {
  std::string_view id;
  std::string_view model;
  int64_t version = 0;
};

// A serialized inference.ModelInferResponse. `raw`: the values as raw_output_contents; where an
// output has no typed form (FP16, BF16), all are raw. INTERNAL when a tensor's bytes are not its
// packed form (they come from a worker), UNIMPLEMENTED when the protocol has no datatype for it.
absl::StatusOr<std::string> EncodeOipResponse(const OipAnswered& answered,
                                              std::span<const tensor::NamedTensor> outputs,
                                              bool raw);

}  // namespace tensord::wire
