// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/warm_up.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "tensor/string_layout.h"

namespace tensord::worker {
namespace {

// Above this a synthetic input says nothing that a real one would not.
constexpr uint64_t kWarmUpBytesMax = 256 << 20;

absl::StatusOr<tensor::Shape> WarmUpShape(const tensor::PartialShape& shape, int64_t rows) {
  if (shape.unknown_rank) return tensor::Shape{rows};
  std::vector<int64_t> dims = shape.dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) dims[i] = i == 0 ? rows : 1;
  }
  return tensor::Shape::Make(dims);
}

absl::StatusOr<tensor::Tensor> Zeros(tensor::DType dtype, const tensor::Shape& shape) {
  uint64_t bytes = 0;
  if (dtype == tensor::DType::kString) {
    bytes = tensor::PackedStringBytes(static_cast<uint64_t>(shape.elements()), 0);
  } else {
    ASSIGN_OR_RETURN(bytes, tensor::FixedBytes(dtype, shape));
  }
  if (bytes > kWarmUpBytesMax) {
    return absl::ResourceExhaustedError(base::Cat("a zero input of shape ", shape.ToString(),
                                                  " needs ", bytes, " bytes; the limit is ",
                                                  kWarmUpBytesMax));
  }
  tensor::Tensor tensor{.dtype = dtype, .shape = shape, .buffer = tensor::Buffer(bytes)};
  // All offsets of empty strings are zero, too.
  if (bytes > 0) std::memset(tensor.buffer.bytes().data(), 0, bytes);
  return tensor;
}

// What cannot be fed is said at load already.
bool CanBeFed(const tensor::Signature& signature) {
  return std::ranges::all_of(signature.inputs, [](const tensor::Endpoint& input) {
    return input.dense && tensor::IsServable(input.dtype);
  });
}

// Whether the scheduler would not make a batch of these.
bool TooLargeToJoin(const tensor::Signature& signature, const std::vector<tensor::Shape>& shapes) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const tensor::DType dtype = signature.inputs[i].dtype;
    const auto elements = static_cast<uint64_t>(shapes[i].elements());
    bytes += elements * (dtype == tensor::DType::kString ? 1 : tensor::ElementBytes(dtype));
  }
  return bytes > limits::kBatchBytesMax;
}

absl::Status RunZeros(engine::Model& model, size_t signature,
                      const std::vector<tensor::Shape>& shapes, std::vector<tensor::Tensor>* kept) {
  std::vector<tensor::Tensor> inputs;
  std::vector<tensor::TensorView> views;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const tensor::Endpoint& input = model.signatures()[signature].inputs[i];
    absl::StatusOr<tensor::Tensor> zeros = Zeros(input.dtype, shapes[i]);
    RETURN_IF_ERROR(base::WithContext(zeros.status(), base::Cat("input '", input.name, "': ")));
    inputs.push_back(*std::move(zeros));
    views.push_back(inputs.back().view());
  }
  const std::unique_ptr<engine::Result> result = model.Run(static_cast<int>(signature), views);
  result->Release();
  if (result->HoldsInputs()) std::ranges::move(inputs, std::back_inserter(*kept));
  return result->status();
}

// The runtime loads a model without its variables when variables.index is not there, and says so in
// its first run.
bool LacksVariables(const absl::Status& status) {
  const std::string_view text = base::Message(status);
  return text.find("Could not find variable") != std::string_view::npos ||
         text.find("uninitialized") != std::string_view::npos;
}

}  // namespace

absl::StatusOr<std::vector<tensor::Shape>> WarmUpShapes(const tensor::Signature& signature,
                                                        int64_t rows) {
  std::vector<tensor::Shape> shapes;
  for (const tensor::Endpoint& input : signature.inputs) {
    if (!input.dense || !tensor::IsServable(input.dtype)) {
      return absl::UnimplementedError(
          base::Cat("input '", input.name, "' is no dense tensor that a client can send"));
    }
    absl::StatusOr<tensor::Shape> shape = WarmUpShape(input.shape, rows);
    RETURN_IF_ERROR(base::WithContext(shape.status(), base::Cat("input '", input.name, "': ")));
    shapes.push_back(*shape);
  }
  return shapes;
}

WarmUpReport WarmUp(engine::Model& model, std::span<const int64_t> rows, const base::Clock& clock) {
  WarmUpReport report;
  const absl::Time begun = clock.Now();
  bool late = false;
  for (size_t i = 0; i < model.signatures().size(); ++i) {
    const tensor::Signature& signature = model.signatures()[i];
    // The init and train operations are no one's to call.
    if (signature.name.starts_with("__saved_model_") || !CanBeFed(signature)) continue;
    std::vector<std::vector<tensor::Shape>> done;
    for (const int64_t count : rows) {
      late = late || clock.Now() - begun > limits::kSyntheticWarmUpMax;
      if (late && !done.empty()) break;
      const absl::StatusOr<std::vector<tensor::Shape>> shapes = WarmUpShapes(signature, count);
      absl::Status status = shapes.status();
      if (shapes.ok()) {
        if (std::find(done.begin(), done.end(), *shapes) != done.end()) continue;
        if (!done.empty() && TooLargeToJoin(signature, *shapes)) break;
        done.push_back(*shapes);
        status = RunZeros(model, i, *shapes, &report.kept);
        ++report.runs;
      }
      if (status.ok()) continue;
      if (LacksVariables(status)) {
        report.broken = absl::FailedPreconditionError(
            base::Cat("its variables were not loaded (is variables/ complete?): signature '",
                      signature.name, "': ", base::Message(status)));
        return report;
      }
      report.warnings.push_back(base::Cat("warm-up of signature '", signature.name, "' with ",
                                          count, " rows of zeros: ", base::Message(status)));
      break;
    }
  }
  if (late) {
    report.warnings.push_back(base::Cat("the warm-up of larger batches was ended after ",
                                        absl::ToInt64Seconds(limits::kSyntheticWarmUpMax),
                                        " s; the model's setting warm_up_rows names sizes"));
  }
  return report;
}

}  // namespace tensord::worker
