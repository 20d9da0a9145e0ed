// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/request.h"
#include "wire/oip/parameters.h"

namespace tensord::wire {

// An inference request of the Open Inference Protocol, in either form.
// Lifetime: views are into the request's bytes or into `names`; moving this keeps them valid.
struct OipRequest {
  tensor::PredictRequest request = {};  // Its spec has the signature's name; gRPC's all of it.
  std::deque<std::string> names = {};   // Of inputs and outputs, where the bytes had escapes.
  std::string id = {};                  // Comes back with the answer.
  OipUrgency urgency = {};
  // REST: which outputs are wanted as bytes behind the JSON text; an entry for each of
  // request.output_filter, where that is not empty.
  std::vector<bool> binary = {};
  bool binary_default = false;  // Of outputs that are not named.
  // gRPC: whether the answer's values are raw.
  bool raw = true;
};

// The model version that a request names: nullopt for an empty text, INVALID_ARGUMENT for anything
// but a number.
absl::StatusOr<std::optional<int64_t>> ParseOipVersion(std::string_view text);

}  // namespace tensord::wire
