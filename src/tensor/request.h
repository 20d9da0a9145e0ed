// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "tensor/tensor.h"

namespace tensord::tensor {

// Which model a call is for, as the client wrote it.
struct ModelSpec {
  std::string name;
  std::optional<int64_t> version;
  std::string version_label;   // Empty when not given; never set together with version.
  std::string signature_name;  // Empty means "serving_default".
};

// How much an answer matters when not all can be given; declared by the client.
enum class Criticality : uint8_t { kCriticalPlus, kCritical, kSheddablePlus, kSheddable };

// A Predict call, decoded but not yet matched with a signature.
// Lifetime: views point into the request's body or into `decoded`; both outlive the call.
struct PredictRequest {
  ModelSpec spec;
  std::vector<NamedTensor> inputs;
  std::vector<std::string_view> output_filter;
  // Tensors that had no packed form in the body (typed fields, JSON). Moving a Tensor keeps its
  // bytes in place, so this may grow and move under the views.
  std::vector<Tensor> decoded;
};

}  // namespace tensord::tensor
