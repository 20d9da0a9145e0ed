// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/litert/lite_file.h"
#include "tensor/dtype.h"
#include "tensor/signature.h"

namespace tensord::engine {

// How a signature is run: its inputs and outputs as numbers of the runner's, in the order that
// front and worker share (engine/signature_def.h).
struct LiteBinding {
  size_t runner = 0;
  std::vector<size_t> inputs;
  std::vector<size_t> outputs;
};

struct LiteSignatures {
  std::string signature_def_map;  // A serialized tensorflow.serving.SignatureDefMap.
  tensor::SignatureList list;
  std::vector<LiteBinding> bindings;  // By the list's order.
};

// Which signatures a model.tflite has: those of its metadata, as in the original; else those that
// the converter wrote; else one, serving_default, whose names are those of the tensors without what
// is behind a colon, as in the original.
// INVALID_ARGUMENT when a signature names tensors that are not there, or of types that cannot
// travel.
absl::StatusOr<LiteSignatures> PlanSignatures(const LiteFile& file);

// TensorFlow's name for TensorFlow Lite's type; kInvalid for one that cannot travel.
tensor::DType ToDType(int32_t lite_type);

// Why a run changes what later runs answer: the first operation of a signature that writes what
// outlives the run. Empty when there is none.
std::string LiteStatefulReason(const LiteFile& file);

}  // namespace tensord::engine
