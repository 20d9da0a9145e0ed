// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/shape.h"

namespace tensord::bench {

// A made-up input: every element is 0.5, 1, or the empty string, whatever the type can hold.
struct MadeInput {
  std::string name;
  tensor::DType dtype = tensor::DType::kFloat;
  tensor::Shape shape;
};

// "x:float:1,784": name, type as TensorFlow prints it, dims. INVALID_ARGUMENT says which part is
// wrong.
absl::StatusOr<MadeInput> ParseInput(std::string_view text);

// A serialized tensorflow.serving.PredictRequest with tensor_content.
std::string MakePredictRequest(std::string_view model, std::string_view signature,
                               const std::vector<MadeInput>& inputs);
// The columnar JSON form of the same.
std::string MakePredictJson(std::string_view signature, const std::vector<MadeInput>& inputs);

}  // namespace tensord::bench
