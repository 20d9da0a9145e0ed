// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/unservable.h"

#include <algorithm>
#include <map>

#include "base/limits.h"
#include "base/protobuf_wire.h"
#include "base/text.h"
#include "tensor/dtype.h"

namespace tensord::engine {
namespace {

using base::WireReader;
using base::WireType;

// What a TensorInfo is, in words, when it cannot travel; empty when it can.
struct Obstacle {
  std::string what;
  std::string instead;  // What the export should take in its place.
};

// CompositeTensor: type_spec = 1; TypeSpecProto: type_spec_class = 1.
uint64_t TypeSpecClass(std::string_view composite) {
  uint64_t type_spec_class = 0;
  for (WireReader reader(composite); reader.Next();) {
    if (reader.field() != 1 || reader.type() != WireType::kBytes) continue;
    for (WireReader spec(reader.bytes()); spec.Next();) {
      if (spec.field() == 1 && spec.type() == WireType::kVarint) type_spec_class = spec.number();
    }
  }
  return type_spec_class;
}

Obstacle Composite(uint64_t type_spec_class) {
  constexpr uint64_t kSparse = 1;
  constexpr uint64_t kRagged = 3;
  if (type_spec_class == kSparse) {
    return {"a sparse tensor",
            "its indices, values and dense_shape as three dense tensors (tf.SparseTensor inside)"};
  }
  if (type_spec_class == kRagged) {
    return {"a ragged tensor",
            "its values and row_lengths as two dense tensors (tf.RaggedTensor.from_row_lengths "
            "inside)"};
  }
  return {"a composite tensor", "its parts as dense tensors"};
}

Obstacle OfType(uint64_t number) {
  constexpr uint64_t kReference = 100;  // Variables of old graphs: that much above their type.
  const auto dtype = static_cast<tensor::DType>(
      number > kReference && number < 256 ? number - kReference : std::min<uint64_t>(number, 256));
  if (tensor::IsServable(dtype)) return {};
  if (dtype == tensor::DType::kResource) {
    return {"a resource", "nothing for it: keep the variable or table inside the model"};
  }
  if (dtype == tensor::DType::kVariant) return {"a variant", "its parts as dense tensors"};
  if (dtype == tensor::DType::kInvalid) return {"declared without a type", "a typed tensor"};
  return {base::Cat("a tensor of type ", tensor::DTypeName(dtype)),
          "another type, to which the model casts"};
}

// TensorShapeProto: dim = 2.
Obstacle OfShape(std::string_view shape) {
  int rank = 0;
  for (WireReader reader(shape); reader.Next();) rank += reader.field() == 2 ? 1 : 0;
  if (rank <= limits::kRankMax) return {};
  return {base::Cat("a tensor of rank ", rank, " (the limit is ", limits::kRankMax, ")"),
          "fewer dims, which the model reshapes"};
}

// TensorInfo: name = 1, dtype = 2, tensor_shape = 3, coo_sparse = 4, composite_tensor = 5.
Obstacle Look(std::string_view tensor_info) {
  uint64_t type = 0;
  Obstacle shape;
  for (WireReader reader(tensor_info); reader.Next();) {
    if (reader.field() == 2 && reader.type() == WireType::kVarint) type = reader.number();
    if (reader.type() != WireType::kBytes) continue;
    if (reader.field() == 3) shape = OfShape(reader.bytes());
    if (reader.field() == 4) return Composite(1);
    if (reader.field() == 5) return Composite(TypeSpecClass(reader.bytes()));
  }
  const Obstacle obstacle = OfType(type);
  return obstacle.what.empty() ? shape : obstacle;
}

// Key and value of a map's entry.
std::pair<std::string, std::string_view> Entry(std::string_view bytes) {
  std::pair<std::string, std::string_view> entry;
  for (WireReader reader(bytes); reader.Next();) {
    if (reader.type() != WireType::kBytes) continue;
    if (reader.field() == 1) entry.first = reader.bytes();
    if (reader.field() == 2) entry.second = reader.bytes();
  }
  return entry;
}

// SignatureDef: inputs = 1, outputs = 2.
void DescribeSignature(const std::string& name, std::string_view signature_def,
                       std::vector<std::string>* lines) {
  std::map<std::string, Obstacle> inputs;
  std::map<std::string, Obstacle> outputs;
  for (WireReader reader(signature_def); reader.Next();) {
    if (reader.type() != WireType::kBytes || reader.field() < 1 || reader.field() > 2) continue;
    const auto [key, tensor_info] = Entry(reader.bytes());
    (reader.field() == 1 ? inputs : outputs)[key] = Look(tensor_info);
  }
  for (const auto& [input, obstacle] : inputs) {
    if (obstacle.what.empty()) continue;
    lines->push_back(base::Cat(
        "signature '", name, "' cannot be served: its input '", input, "' is ", obstacle.what,
        ", which no request can carry; export a signature that takes ", obstacle.instead));
  }
  for (const auto& [output, obstacle] : outputs) {
    if (obstacle.what.empty()) continue;
    lines->push_back(base::Cat("signature '", name, "': its output '", output, "' is ",
                               obstacle.what,
                               ", which no answer can carry; name the other outputs in the "
                               "request's output_filter, or export ",
                               obstacle.instead));
  }
}

}  // namespace

std::vector<std::string> DescribeUnservable(std::string_view signature_def_map) {
  std::map<std::string, std::string_view> signatures;
  for (WireReader reader(signature_def_map); reader.Next();) {
    if (reader.field() != 1 || reader.type() != WireType::kBytes) continue;
    const auto [name, signature_def] = Entry(reader.bytes());
    // The init and train operations are no one's to call.
    if (!name.starts_with("__saved_model_")) signatures[name] = signature_def;
  }
  std::vector<std::string> lines;
  for (const auto& [name, signature_def] : signatures) {
    DescribeSignature(name, signature_def, &lines);
  }
  return lines;
}

}  // namespace tensord::engine
