// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/warm_up.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/limits.h"
#include "base/sched_limits.h"
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

// Makes the runs of one size: the first warms it up, the next ones are timed.
class SizeRuns {
 public:
  SizeRuns(engine::Model& model, const base::Clock& clock, WarmUpReport* report)
      : model_(model), clock_(clock), report_(report) {}

  absl::Status Make(size_t signature, int64_t rows, const std::vector<tensor::Shape>& shapes) {
    ASSIGN_OR_RETURN(ZeroInputs zeros, MakeZeros(model_.signatures()[signature], shapes));
    ++report_->runs;
    bool kept = false;
    absl::Status status = Run(signature, zeros, &kept);
    absl::Duration best = absl::InfiniteDuration();
    for (int i = 0; i < kTimedRuns && status.ok() && spent_ < limits::kWarmUpTimingMax; ++i) {
      const absl::Time begun = clock_.Now();
      status = Run(signature, zeros, &kept);
      const absl::Duration time = clock_.Now() - begun;
      spent_ += time;
      best = std::min(best, time);
    }
    if (kept) std::ranges::move(zeros.tensors, std::back_inserter(report_->kept));
    if (status.ok() && best < absl::InfiniteDuration() &&
        report_->run_times.size() < limits::kTimedRunsMax) {
      report_->run_times.push_back(
          {.signature = static_cast<uint32_t>(signature),
           .rows = rows,
           .nanoseconds = static_cast<uint64_t>(absl::ToInt64Nanoseconds(best))});
    }
    return status;
  }

 private:
  static constexpr int kTimedRuns = 3;

  absl::Status Run(size_t signature, const ZeroInputs& zeros, bool* kept) const {
    return Finish(model_.Run(static_cast<int>(signature), zeros.views), kept);
  }

  engine::Model& model_;
  const base::Clock& clock_;
  WarmUpReport* const report_;
  absl::Duration spent_;  // On runs made only to be timed.
};

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

absl::StatusOr<ZeroInputs> MakeZeros(const tensor::Signature& signature,
                                     const std::vector<tensor::Shape>& shapes) {
  ZeroInputs inputs;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const tensor::Endpoint& input = signature.inputs[i];
    absl::StatusOr<tensor::Tensor> zeros = Zeros(input.dtype, shapes[i]);
    RETURN_IF_ERROR(base::WithContext(zeros.status(), base::Cat("input '", input.name, "': ")));
    inputs.tensors.push_back(*std::move(zeros));
    inputs.views.push_back(inputs.tensors.back().view());
  }
  return inputs;
}

absl::Status Finish(std::unique_ptr<engine::Result> result, bool* kept) {
  result->Release();
  *kept |= result->HoldsInputs();
  return result->status();
}

bool CanBeCalled(const tensor::Signature& signature) {
  return !signature.name.starts_with("__saved_model_") && CanBeFed(signature);
}

WarmUpReport WarmUp(engine::Model& model, std::span<const int64_t> rows, const base::Clock& clock) {
  WarmUpReport report;
  const absl::Time begun = clock.Now();
  SizeRuns runs(model, clock, &report);
  bool late = false;
  for (size_t i = 0; i < model.signatures().size(); ++i) {
    const tensor::Signature& signature = model.signatures()[i];
    if (!CanBeCalled(signature)) continue;
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
        status = runs.Make(i, count, *shapes);
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
