// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/client.h"
#include "tensor/shape.h"
#include "tensor/signature.h"

namespace tensord::bench {

// A made-up input: every element is 0.5, 1, or the empty string, whatever the type can hold.
struct MadeInput {
  std::string name = {};
  tensor::DType dtype = tensor::DType::kFloat;
  tensor::Shape shape = {};
};

// "x:float:1,784": name, type as TensorFlow prints it, dims. INVALID_ARGUMENT says which part is
// wrong.
absl::StatusOr<MadeInput> ParseInput(std::string_view text);

// A serialized tensorflow.serving.PredictRequest with tensor_content.
std::string MakePredictRequest(std::string_view model, std::string_view signature,
                               const std::vector<MadeInput>& inputs);
// The columnar JSON form of the same.
std::string MakePredictJson(std::string_view signature, const std::vector<MadeInput>& inputs);

// The same as inference.ModelInferRequest with raw contents, and as its JSON form. INVALID_ARGUMENT
// for a type that the protocol has no name for.
absl::StatusOr<std::string> MakeOipRequest(std::string_view model, std::string_view signature,
                                           const std::vector<MadeInput>& inputs);
absl::StatusOr<std::string> MakeOipJson(std::string_view signature,
                                        const std::vector<MadeInput>& inputs);

// Inputs that fit what the server says of a signature: open dims are `rows` for the first of an
// input and 1 elsewhere. Inputs with a default are left out. INVALID_ARGUMENT for a signature that
// cannot be fed: sparse inputs.
absl::StatusOr<std::vector<MadeInput>> MakeInputs(const tensor::Signature& signature, int64_t rows);

// A unary call. `deadline`: what the server is told of it.
Request MakeGrpcRequest(std::string_view authority, std::string_view path, std::string_view message,
                        const HeaderList& headers, absl::Duration deadline, bool tls = false);
Request MakeRestRequest(std::string_view authority, std::string_view method, std::string_view path,
                        std::string_view body, const HeaderList& headers, bool one_shot);

}  // namespace tensord::bench
