// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/signatures.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "tensor/dense.h"
#include "tensord/get_model_metadata.pb.h"
#include "wire/tensor_walk.h"

namespace tensord::wire {
namespace {

namespace tf = ::tensorflow;
using tensor::DType;
using tensor::Endpoint;
using tensor::Signature;

// A reference to a variable (old graphs) is fed and fetched as the value.
DType DTypeOf(tf::DataType dtype) {
  constexpr int kReference = 100;
  const int number = static_cast<int>(dtype);
  return static_cast<DType>(number > kReference ? number - kReference : number);
}

absl::StatusOr<tensor::PartialShape> ShapeOf(const tf::TensorInfo& info) {
  tensor::PartialShape shape;
  // Without a shape nothing is known, as in TensorFlow.
  if (!info.has_tensor_shape() || info.tensor_shape().unknown_rank()) return shape;
  shape.unknown_rank = false;
  if (info.tensor_shape().dim_size() > limits::kSignatureRankMax) {
    return absl::InvalidArgumentError(base::Cat("rank ", info.tensor_shape().dim_size(),
                                                " is above the limit of ",
                                                limits::kSignatureRankMax));
  }
  for (const auto& dim : info.tensor_shape().dim()) {
    if (dim.size() < -1) {
      return absl::InvalidArgumentError(base::Cat("a dim is ", dim.size()));
    }
    shape.dims.push_back(dim.size());
  }
  return shape;
}

absl::StatusOr<Endpoint> MakeEndpoint(const std::string& name, const tf::TensorInfo& info) {
  ASSIGN_OR_RETURN(tensor::PartialShape shape, ShapeOf(info));
  const DType dtype = DTypeOf(info.dtype());
  return Endpoint{.name = name,
                  .tensor_name = info.name(),
                  .dtype = dtype,
                  .shape = std::move(shape),
                  .dense = tensor::IsDense(info.encoding_case() == tf::TensorInfo::kName, dtype),
                  .default_value = std::nullopt};
}

// One of the maps of inputs and outputs; `side` names it in errors.
absl::StatusOr<std::vector<Endpoint>> MakeEndpoints(
    std::string_view side, const google::protobuf::Map<std::string, tf::TensorInfo>& infos) {
  if (infos.size() > limits::kInputsMax) {
    return absl::InvalidArgumentError(base::Cat("more than ", limits::kInputsMax, " ", side, "s"));
  }
  std::vector<Endpoint> endpoints;
  endpoints.reserve(infos.size());
  for (const auto& [name, info] : infos) {
    absl::StatusOr<Endpoint> endpoint = MakeEndpoint(name, info);
    if (!endpoint.ok()) {
      return base::WithContext(endpoint.status(), base::Cat(side, " \"", name, "\": "));
    }
    endpoints.push_back(*std::move(endpoint));
  }
  std::sort(endpoints.begin(), endpoints.end(),
            [](const Endpoint& a, const Endpoint& b) { return a.name < b.name; });
  return endpoints;
}

absl::StatusOr<tensor::Tensor> MakeDefault(const tf::TensorProto& proto, const Endpoint& input,
                                           DecodeBudget* budget) {
  const std::string bytes = proto.SerializeAsString();
  const std::string_view pieces[] = {bytes};
  ASSIGN_OR_RETURN(DecodedTensor decoded, DecodeTensor(pieces, budget));
  if (decoded.view.dtype != input.dtype) {
    return absl::InvalidArgumentError(base::Cat("the default is ",
                                                tensor::DTypeName(decoded.view.dtype),
                                                ", the input ", tensor::DTypeName(input.dtype)));
  }
  if (decoded.owned.dtype != DType::kInvalid) return std::move(decoded.owned);
  tensor::Tensor copy{decoded.view.dtype, decoded.view.shape,
                      tensor::Buffer(decoded.view.bytes.size())};
  if (copy.buffer.size() > 0) {
    std::memcpy(copy.buffer.bytes().data(), decoded.view.bytes.data(), copy.buffer.size());
  }
  return copy;
}

absl::Status AddDefaults(const tf::SignatureDef& def, DecodeBudget* budget, Signature* signature) {
  for (const auto& [name, proto] : def.defaults()) {
    const int index = signature->InputIndex(name);
    if (index < 0) continue;  // TensorFlow ignores it, too.
    Endpoint& input = signature->inputs[static_cast<size_t>(index)];
    absl::StatusOr<tensor::Tensor> value = MakeDefault(proto, input, budget);
    if (!value.ok()) {
      return base::WithContext(value.status(), base::Cat("default of input \"", name, "\": "));
    }
    input.default_value = *std::move(value);
  }
  return absl::OkStatus();
}

absl::StatusOr<Signature> MakeSignature(const std::string& name, const tf::SignatureDef& def,
                                        DecodeBudget* budget) {
  Signature signature{.name = name, .method_name = def.method_name(), .inputs = {}, .outputs = {}};
  ASSIGN_OR_RETURN(signature.inputs, MakeEndpoints("input", def.inputs()));
  ASSIGN_OR_RETURN(signature.outputs, MakeEndpoints("output", def.outputs()));
  RETURN_IF_ERROR(AddDefaults(def, budget, &signature));
  return signature;
}

}  // namespace

absl::StatusOr<tensor::SignatureList> ParseSignatures(std::string_view signature_def_map_bytes) {
  if (signature_def_map_bytes.size() > limits::kModelInfoBytesMax) {
    return absl::InvalidArgumentError(
        base::Cat("the signatures take ", signature_def_map_bytes.size(), " bytes; the limit is ",
                  limits::kModelInfoBytesMax));
  }
  // Protobuf's own limit of 100 levels bounds the nesting.
  tf::serving::SignatureDefMap map;
  if (!map.ParseFromArray(signature_def_map_bytes.data(),
                          static_cast<int>(signature_def_map_bytes.size()))) {
    return absl::InvalidArgumentError("the bytes are not a tensorflow.serving.SignatureDefMap");
  }
  if (map.signature_def().size() > limits::kSignaturesMax) {
    return absl::InvalidArgumentError(
        base::Cat("the model has more than ", limits::kSignaturesMax, " signatures"));
  }
  DecodeBudget budget;
  tensor::SignatureList signatures;
  signatures.reserve(map.signature_def().size());
  for (const auto& [name, def] : map.signature_def()) {
    absl::StatusOr<Signature> signature = MakeSignature(name, def, &budget);
    if (!signature.ok()) {
      return base::WithContext(signature.status(), base::Cat("signature \"", name, "\": "));
    }
    signatures.push_back(*std::move(signature));
  }
  std::sort(signatures.begin(), signatures.end(),
            [](const Signature& a, const Signature& b) { return a.name < b.name; });
  return signatures;
}

}  // namespace tensord::wire
