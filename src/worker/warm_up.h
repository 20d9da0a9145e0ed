// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "engine/engine.h"
#include "engine/model_info.h"
#include "tensor/shape.h"
#include "tensor/signature.h"
#include "tensor/tensor.h"

namespace tensord::worker {

// Shapes for a synthetic run of a signature, one an input: open leading dims become `rows`, other
// open dims 1; an input of unknown rank is a vector of `rows`. UNIMPLEMENTED when an input cannot
// be fed.
absl::StatusOr<std::vector<tensor::Shape>> WarmUpShapes(const tensor::Signature& signature,
                                                        int64_t rows);

// Inputs of zeros and empty strings. Lifetime: the views point into the tensors.
struct ZeroInputs {
  std::vector<tensor::Tensor> tensors;
  std::vector<tensor::TensorView> views;
};
absl::StatusOr<ZeroInputs> MakeZeros(const tensor::Signature& signature,
                                     const std::vector<tensor::Shape>& shapes);

// How a run ended, with nothing of its result left. Sets *kept when its inputs have to be kept, and
// leaves it otherwise.
absl::Status Finish(std::unique_ptr<engine::Result> result, bool* kept);

// Whether a client can call it: not what loads or trains the model, and every input can be sent.
bool CanBeCalled(const tensor::Signature& signature);

struct WarmUpReport {
  uint32_t runs = 0;
  std::vector<std::string> warnings;
  absl::Status broken;                     // Not OK: no run of this model can work.
  std::vector<engine::RunTime> run_times;  // The shortest of each size.
  std::vector<tensor::Tensor> kept;        // Inputs that the runtime still reads: keep them, too.
};

// Runs every signature once for each of `rows` with zeros and empty strings, so that the runtime
// has optimised its graphs before a client waits for it. Sizes that come to the same shapes run
// once, and those of larger inputs than the scheduler joins do not run; no more than the first size
// does once kSyntheticWarmUpMax is over. A run that fails is a warning, and the end for its
// signature: zeros may be no sensible input. Then each size is run some more to time it, as long as
// kWarmUpTimingMax lasts.
// REQUIRES: the model is not stateful.
WarmUpReport WarmUp(engine::Model& model, std::span<const int64_t> rows, const base::Clock& clock);

}  // namespace tensord::worker
