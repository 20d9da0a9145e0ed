// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace tensord::engine {

// A model made of one function. Threads: `run` is called from every executor.
struct FakeModelSpec {
  tensor::SignatureList signatures;
  std::string stateful_reason;
  // The signature's number and inputs in; one tensor for each dense output out.
  std::function<absl::StatusOr<std::vector<tensor::Tensor>>(int,
                                                            std::span<const tensor::TensorView>)>
      run;
  bool passes_inputs_through = false;         // Outputs hold the inputs' memory until released.
  bool keeps_inputs = false;                  // The runtime never lets go of the inputs' memory.
  absl::Status narrow = absl::OkStatus();     // What OpenNarrow says.
  std::vector<int>* narrow_warmed = nullptr;  // Signatures, as WarmNarrow got them; may be null.
};

class FakeResult : public Result {
 public:
  FakeResult(absl::StatusOr<std::vector<tensor::Tensor>> outputs, bool passed, bool kept)
      : passed_(passed), kept_(kept) {
    status_ = outputs.status();
    if (outputs.ok()) tensors_ = *std::move(outputs);
    for (const tensor::Tensor& tensor : tensors_) {
      infos_.push_back({tensor.dtype, tensor.shape, tensor.buffer.size()});
    }
  }
  const absl::Status& status() const override { return status_; }
  std::span<const OutputInfo> outputs() const override { return infos_; }
  void Pack(size_t i, std::span<std::byte> out) const override {
    const std::span<const std::byte> bytes = tensors_[i].buffer.bytes();
    std::copy(bytes.begin(), bytes.end(), out.begin());
  }
  bool HoldsInputs() const override { return passed_ || kept_; }
  void Release() override {
    tensors_.clear();
    passed_ = false;
  }

 private:
  absl::Status status_;
  std::vector<tensor::Tensor> tensors_;
  std::vector<OutputInfo> infos_;
  bool passed_;
  const bool kept_;
};

class FakeModel : public Model {
 public:
  explicit FakeModel(FakeModelSpec spec) : spec_(std::move(spec)) {}
  const tensor::SignatureList& signatures() const override { return spec_.signatures; }
  const std::string& stateful_reason() const override { return spec_.stateful_reason; }
  void Describe(ModelInfo* info) const override {
    info->runtime_version = "fake";
    info->stateful_reason = spec_.stateful_reason;
  }
  std::unique_ptr<Result> Run(int signature, std::span<const tensor::TensorView> inputs) override {
    return std::make_unique<FakeResult>(spec_.run(signature, inputs), spec_.passes_inputs_through,
                                        spec_.keeps_inputs);
  }
  std::unique_ptr<Result> RunTogether(std::span<const int> signatures,
                                      std::span<const tensor::TensorView> inputs) override {
    absl::StatusOr<std::vector<tensor::Tensor>> all = std::vector<tensor::Tensor>();
    for (const int signature : signatures) {
      absl::StatusOr<std::vector<tensor::Tensor>> outputs = spec_.run(signature, inputs);
      if (!outputs.ok()) {
        all = outputs.status();
        break;
      }
      for (tensor::Tensor& output : *outputs) all->push_back(std::move(output));
    }
    return std::make_unique<FakeResult>(std::move(all), spec_.passes_inputs_through,
                                        spec_.keeps_inputs);
  }
  absl::Status OpenNarrow(const std::string&) override { return spec_.narrow; }
  std::unique_ptr<Result> WarmNarrow(int signature,
                                     std::span<const tensor::TensorView> inputs) override {
    if (spec_.narrow_warmed != nullptr) spec_.narrow_warmed->push_back(signature);
    return Run(signature, inputs);
  }

 private:
  const FakeModelSpec spec_;
};

// Loads the given model, once, or fails with the given status.
class FakeEngine : public Engine {
 public:
  explicit FakeEngine(absl::StatusOr<FakeModelSpec> spec) : spec_(std::move(spec)) {}
  absl::StatusOr<std::unique_ptr<Model>> Load(const LoadOptions&) override {
    if (!spec_.ok()) return spec_.status();
    return std::make_unique<FakeModel>(*std::move(spec_));
  }

 private:
  absl::StatusOr<FakeModelSpec> spec_;
};

}  // namespace tensord::engine
