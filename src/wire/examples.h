// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/request.h"
#include "tensor/string_layout.h"
#include "tensor/tensor.h"

// Classify, Regress and MultiInference requests: tf.Examples, which the model reads as strings. An
// Example is never parsed here: the model's own ParseExample does that.
namespace tensord::wire {

// One signature to run, as a client named it. `method` is a method name, "tensorflow/serving/...";
// Classify and Regress requests carry none.
struct InferenceTask {
  tensor::ModelSpec spec;
  std::string method;
};

// A request whose examples were found but not looked into.
// Lifetime: the views are into the body.
struct InferenceRequest {
  std::vector<InferenceTask> tasks;     // One, but for MultiInference.
  std::vector<std::string_view> input;  // The serialized Input, in pieces that protobuf merges.
};

// A serialized ClassificationRequest or RegressionRequest: the same fields.
// INVALID_ARGUMENT when malformed or without a model's name, in the original's words.
absl::StatusOr<InferenceRequest> WalkInference(std::string_view body);
// A serialized MultiInferenceRequest. The first task must name its model; the others are the
// caller's to check.
absl::StatusOr<InferenceRequest> WalkMultiInference(std::string_view body);

// All examples as one string tensor [n], each with the context's bytes before its own: merged, as
// protobuf reads that. INVALID_ARGUMENT when there are none, or too many bytes.
absl::StatusOr<tensor::Tensor> ReadExamples(std::span<const std::string_view> input);

// A serialized ClassificationRequest or RegressionRequest of the examples in the request's only
// input, which is such a tensor.
std::string EncodeInferenceRequest(const tensor::ModelSpec& asked,
                                   const tensor::PredictRequest& request);

// Puts such a tensor together.
class ExampleWriter {
 public:
  // `example_bytes` is the size of all examples together, without context.
  // Lifetime: the context outlives the writer.
  static absl::StatusOr<ExampleWriter> Make(uint64_t examples, uint64_t example_bytes,
                                            std::string_view context);
  // REQUIRES: exactly `examples` calls, whose sizes sum to `example_bytes`.
  void Add(std::string_view example);
  tensor::Tensor Take() && { return std::move(tensor_); }

 private:
  ExampleWriter(tensor::Tensor tensor, std::string_view context)
      : tensor_(std::move(tensor)),
        context_(context),
        writer_(tensor_.buffer.bytes(), static_cast<uint64_t>(tensor_.shape.elements())) {}

  tensor::Tensor tensor_;
  std::string_view context_;
  tensor::StringWriter writer_;
};

}  // namespace tensord::wire
