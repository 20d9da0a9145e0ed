// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/tensorflow/load.h"
#include "tensor/tensor.h"
#include "tensord/predict.pb.h"

// What all peers share: a model in this process behind TensorFlow's C API, and the way from a
// PredictRequest message to its PredictResponse that a server with generated protobuf classes takes
// (message -> tensor -> run -> tensor -> message, one copy at each arrow).
namespace tensord::peers {

// A model's default signature.
// Threads: Run is safe from any number of threads.
class Runner {
 public:
  virtual ~Runner() = default;
  virtual const tensor::Signature& signature() const = 0;
  // Inputs and outputs in the signature's order.
  virtual absl::StatusOr<std::vector<tensor::Tensor>> Run(std::vector<tensor::Tensor> inputs) = 0;
};

// Runs in the caller's thread, at once; warmed up.
absl::StatusOr<std::unique_ptr<Runner>> LoadRunner(engine::Engine& engine,
                                                   const std::string& version_directory);

using Runners = std::map<std::string, std::unique_ptr<Runner>, std::less<>>;

absl::Status Predict(const Runners& runners, const tensorflow::serving::PredictRequest& request,
                     tensorflow::serving::PredictResponse* response);

}  // namespace tensord::peers
