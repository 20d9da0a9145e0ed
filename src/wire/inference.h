// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tensor/request.h"
#include "tensor/signature.h"
#include "tensor/string_layout.h"
#include "tensor/tensor.h"

// Classify and Regress: which signatures can do it, and what their outputs mean.
namespace tensord::wire {

enum class InferenceMethod : uint8_t { kClassify, kRegress };

// "tensorflow/serving/classify", "tensorflow/serving/regress".
std::string_view MethodName(InferenceMethod method);
// UNIMPLEMENTED for any other name.
absl::StatusOr<InferenceMethod> MethodOf(std::string_view method_name);

// Where in the signature's outputs the answer is; -1 for what the model does not give.
struct InferenceOutputs {
  int labels = -1;  // "classes"
  int values = -1;  // "scores", or "outputs" of a regression.
};

// INVALID_ARGUMENT, in the original's words, when the signature has not the method's form;
// `check_name`: also when it is declared for another method.
absl::StatusOr<InferenceOutputs> CheckInference(const tensor::Signature& signature,
                                                InferenceMethod method, bool check_name);

// The outputs of one signature, read as its method's result: a row an example, of one value
// (regress), or of classes with a label and a score each (classify).
// Lifetime: as the outputs.
struct InferenceResult {
  InferenceMethod method = InferenceMethod::kClassify;
  int64_t rows = 0;
  int64_t columns = 1;                         // Classes an example.
  std::optional<tensor::StringReader> labels;  // None: all are empty.
  std::span<const std::byte> values;           // Floats; empty: all are zero.

  std::string_view label(int64_t row, int64_t column) const;
  float value(int64_t row, int64_t column) const;
};

// `outputs` are those of the signature, in its order. INVALID_ARGUMENT, in the original's words,
// when their dtypes or shapes are not a result for `examples` examples.
absl::StatusOr<InferenceResult> ReadInference(InferenceMethod method, const InferenceOutputs& where,
                                              std::span<const tensor::TensorView> outputs,
                                              int64_t examples);

// A serialized ClassificationResponse or RegressionResponse. `answered` holds the model's name, the
// version that ran and the resolved signature name. Labels that are not UTF-8 are made so, or no
// client could read the answer.
std::string EncodeInferenceResponse(const tensor::ModelSpec& answered,
                                    const InferenceResult& result);

// Appends one result of a MultiInferenceResponse.
void AppendMultiInferenceResult(const tensor::ModelSpec& answered, const InferenceResult& result,
                                std::string* response);

}  // namespace tensord::wire
