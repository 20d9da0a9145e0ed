// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/signature_def.h"

#include <map>
#include <string>

#include "base/protobuf_wire.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "tensor/dense.h"

namespace tensord::engine {
namespace {

using base::WireReader;
using base::WireType;

absl::Status Malformed(std::string_view what) {
  return absl::InvalidArgumentError(base::Cat("malformed ", what, " in the model's signatures"));
}

struct MapEntry {
  std::string_view key;
  std::string_view value;
};

absl::StatusOr<MapEntry> ParseMapEntry(std::string_view bytes) {
  MapEntry entry;
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.type() != WireType::kBytes) continue;
    if (reader.field() == 1) entry.key = reader.bytes();
    if (reader.field() == 2) entry.value = reader.bytes();
  }
  if (!reader.ok()) return Malformed("map entry");
  return entry;
}

// TensorShapeProto.Dim: size = 1.
absl::StatusOr<int64_t> ParseDim(std::string_view bytes) {
  int64_t size = 0;
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == 1 && reader.type() == WireType::kVarint) {
      size = static_cast<int64_t>(reader.number());
    }
  }
  if (!reader.ok()) return Malformed("dim");
  return size;
}

// TensorShapeProto: dim = 2, unknown_rank = 3.
absl::StatusOr<tensor::PartialShape> ParseShape(std::string_view bytes) {
  tensor::PartialShape shape;
  shape.unknown_rank = false;
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == 2 && reader.type() == WireType::kBytes) {
      ASSIGN_OR_RETURN(const int64_t dim, ParseDim(reader.bytes()));
      shape.dims.push_back(dim);
    } else if (reader.field() == 3 && reader.type() == WireType::kVarint) {
      shape.unknown_rank = reader.number() != 0;
    }
  }
  if (!reader.ok()) return Malformed("shape");
  if (shape.unknown_rank) shape.dims.clear();
  return shape;
}

// TensorInfo: name = 1, dtype = 2, tensor_shape = 3, coo_sparse = 4, composite_tensor = 5. A
// message without a shape has the shape of a scalar, as protobuf's default instance says.
absl::StatusOr<tensor::Endpoint> ParseTensorInfo(std::string_view name, std::string_view bytes) {
  tensor::Endpoint endpoint;
  endpoint.name = name;
  endpoint.shape.unknown_rank = false;
  endpoint.dense = false;
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == 2 && reader.type() == WireType::kVarint) {
      // Graphs of TensorFlow 1 have references to variables: 100 more than the type that a feed or
      // a fetch really is.
      constexpr uint64_t kReference = 100;
      const uint64_t number = reader.number();
      const uint64_t dtype = number > kReference && number < 256 ? number - kReference : number;
      endpoint.dtype = dtype < 256 ? static_cast<tensor::DType>(dtype) : tensor::DType::kInvalid;
    }
    if (reader.type() != WireType::kBytes) continue;
    switch (reader.field()) {
      case 1:
        endpoint.tensor_name = reader.bytes();
        endpoint.dense = true;
        break;
      case 3: {
        ASSIGN_OR_RETURN(endpoint.shape, ParseShape(reader.bytes()));
        break;
      }
      case 4:
      case 5:
        endpoint.tensor_name.clear();
        endpoint.dense = false;
        break;
      default:
        break;
    }
  }
  if (!reader.ok()) return Malformed("tensor");
  endpoint.dense = tensor::IsDense(endpoint.dense, endpoint.dtype);
  return endpoint;
}

using Endpoints = std::map<std::string, tensor::Endpoint, std::less<>>;

std::vector<tensor::Endpoint> Values(Endpoints endpoints) {
  std::vector<tensor::Endpoint> values;
  values.reserve(endpoints.size());
  for (auto& [name, endpoint] : endpoints) values.push_back(std::move(endpoint));
  return values;
}

// SignatureDef: inputs = 1, outputs = 2, method_name = 3, defaults = 4.
absl::StatusOr<tensor::Signature> ParseSignatureDef(std::string_view name, std::string_view bytes) {
  tensor::Signature signature;
  signature.name = name;
  Endpoints inputs;
  Endpoints outputs;
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.type() != WireType::kBytes) continue;
    if (reader.field() == 3) signature.method_name = reader.bytes();
    if (reader.field() != 1 && reader.field() != 2) continue;
    ASSIGN_OR_RETURN(const MapEntry entry, ParseMapEntry(reader.bytes()));
    ASSIGN_OR_RETURN(tensor::Endpoint endpoint, ParseTensorInfo(entry.key, entry.value));
    Endpoints& side = reader.field() == 1 ? inputs : outputs;
    side.insert_or_assign(std::string(entry.key), std::move(endpoint));
  }
  if (!reader.ok()) return Malformed("signature");
  signature.inputs = Values(std::move(inputs));
  signature.outputs = Values(std::move(outputs));
  return signature;
}

}  // namespace

absl::StatusOr<tensor::SignatureList> ParseSignatureDefs(std::string_view bytes,
                                                         uint32_t map_field) {
  std::map<std::string, tensor::Signature, std::less<>> sorted;
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() != map_field || reader.type() != WireType::kBytes) continue;
    ASSIGN_OR_RETURN(const MapEntry entry, ParseMapEntry(reader.bytes()));
    ASSIGN_OR_RETURN(tensor::Signature signature, ParseSignatureDef(entry.key, entry.value));
    sorted.insert_or_assign(std::string(entry.key), std::move(signature));
  }
  if (!reader.ok()) return Malformed("signature map");
  tensor::SignatureList list;
  list.reserve(sorted.size());
  for (auto& [name, signature] : sorted) list.push_back(std::move(signature));
  return list;
}

}  // namespace tensord::engine
