// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace tensord::tensor {

// One input or output of a signature (a TensorInfo of the SavedModel).
struct Endpoint {
  std::string name;         // The client's name (alias), the map's key.
  std::string tensor_name;  // The graph's name, "serving_default_x:0".
  DType dtype = DType::kInvalid;
  PartialShape shape;
  bool dense = true;                    // One that can be fed or fetched (tensor/dense.h).
  std::optional<Tensor> default_value;  // SignatureDef.defaults; inputs only.
};

// One way to call a model. Inputs and outputs are sorted by name, bytewise: a SignatureDef's maps
// come in random order, and front and worker number endpoints by this order.
struct Signature {
  std::string name;         // "serving_default"
  std::string method_name;  // "tensorflow/serving/predict"
  std::vector<Endpoint> inputs;
  std::vector<Endpoint> outputs;

  // Index into inputs or outputs, -1 when there is none of that name.
  int InputIndex(std::string_view input) const;
  int OutputIndex(std::string_view output) const;
};

// All signatures of a model, sorted by name; the index here is the number in channel records.
using SignatureList = std::vector<Signature>;

// Index of the signature of that name, -1 when there is none.
int SignatureIndex(const SignatureList& signatures, std::string_view name);

// Whether both lists are called and answer alike: the same signatures, inputs and outputs, with the
// same types and shapes. (Defaults and the graph's own names do not count.)
bool SameCalls(const SignatureList& a, const SignatureList& b);

}  // namespace tensord::tensor
