// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// Bytes as PredictRequest, as SignatureDefMap and as the rare requests. What parses must be
// consistent, agree with protobuf's own parser, and go through the encoder and back.

#include <set>
#include <string>
#include <string_view>

#include "base/check.h"
#include "tensor/string_layout.h"
#include "tensord/classification.pb.h"
#include "tensord/predict.pb.h"
#include "wire/bind.h"
#include "wire/cold.h"
#include "wire/examples.h"
#include "wire/predict_encode.h"
#include "wire/predict_walk.h"
#include "wire/signatures.h"

namespace tensord {
namespace {

void CheckTensor(const tensor::TensorView& tensor) {
  TENSORD_CHECK(tensor::IsServable(tensor.dtype));
  if (tensor.dtype == tensor::DType::kString) {
    const auto elements = static_cast<uint64_t>(tensor.shape.elements());
    TENSORD_CHECK(tensor::StringReader::Open(tensor.bytes, elements).ok());
    return;
  }
  TENSORD_CHECK(*tensor::FixedBytes(tensor.dtype, tensor.shape) == tensor.bytes.size());
  if (tensor.dtype != tensor::DType::kBool) return;
  for (const std::byte value : tensor.bytes) TENSORD_CHECK(value <= std::byte{1});
}

// Protobuf refuses names that are not UTF-8, which the walker does not look at.
void CompareWithProtobuf(std::string_view body, const tensor::PredictRequest& request) {
  tensorflow::serving::PredictRequest official;
  if (!official.ParseFromArray(body.data(), static_cast<int>(body.size()))) return;
  TENSORD_CHECK(official.model_spec().name() == request.spec.name);
  TENSORD_CHECK(official.model_spec().has_version() == request.spec.version.has_value());
  TENSORD_CHECK(official.model_spec().version_label() == request.spec.version_label);
  TENSORD_CHECK(official.output_filter_size() == static_cast<int>(request.output_filter.size()));
  TENSORD_CHECK(official.inputs().size() == request.inputs.size());
  for (const tensor::NamedTensor& input : request.inputs) {
    const auto at = official.inputs().find(std::string(input.name));
    TENSORD_CHECK(at != official.inputs().end());
    TENSORD_CHECK(at->second.dtype() == static_cast<int>(input.tensor.dtype));
    TENSORD_CHECK(at->second.tensor_shape().dim_size() == input.tensor.shape.rank());
  }
}

void TryPredict(std::string_view body) {
  const auto request = wire::ParsePredict(body);
  if (!request.ok()) return;
  for (const tensor::NamedTensor& input : request->inputs) CheckTensor(input.tensor);
  CompareWithProtobuf(body, *request);
  for (const bool as_content : {false, true}) {
    const auto bytes = wire::EncodePredictResponse(request->spec, request->inputs, as_content);
    TENSORD_CHECK(bytes.ok());
    // The response's outputs are the request's inputs under another field number.
    tensorflow::serving::PredictResponse response;
    if (!response.ParseFromString(*bytes)) continue;
    TENSORD_CHECK(response.outputs().size() == request->inputs.size());
    TENSORD_CHECK(response.ByteSizeLong() == bytes->size());
  }
}

void TryPeek(std::string_view prefix) {
  const auto spec = wire::PeekModelSpec(prefix);
  TENSORD_CHECK(!spec.has_value() || !spec->name.empty());
  for (const uint64_t least : {1, 1000}) {
    const auto content = wire::PeekContent(prefix, least);
    if (!content.has_value()) continue;
    TENSORD_CHECK(content->offset <= prefix.size());
    TENSORD_CHECK(content->bytes >= least);
  }
}

void TrySignatures(std::string_view bytes) {
  const auto signatures = wire::ParseSignatures(bytes);
  if (!signatures.ok()) return;
  for (const tensor::Signature& signature : *signatures) {
    const auto call = wire::Bind(tensor::PredictRequest{}, signature);
    if (!call.ok()) continue;
    TENSORD_CHECK(call->inputs.size() == signature.inputs.size());
    for (const tensor::TensorView& input : call->inputs) CheckTensor(input);
    wire::DescribeMisfits(*call, signature);
  }
  const tensor::ModelSpec spec{
      .name = "m", .version = 1, .version_label = "", .signature_name = ""};
  TENSORD_CHECK(wire::EncodeGetModelMetadataResponse(spec, bytes).ok());
  TENSORD_CHECK(wire::PrintModelMetadata(spec, bytes).ok());
}

// As many examples as protobuf finds, or as many as there are rows.
void TryExamples(std::string_view body) {
  (void)wire::WalkMultiInference(body).ok();
  const auto request = wire::WalkInference(body);
  if (!request.ok()) return;
  const auto examples = wire::ReadExamples(request->input);
  if (!examples.ok()) return;
  CheckTensor(examples->view());
  tensorflow::serving::ClassificationRequest official;
  if (!official.ParseFromArray(body.data(), static_cast<int>(body.size()))) return;
  const auto& input = official.input();
  const int count = input.has_example_list() ? input.example_list().examples_size()
                                             : input.example_list_with_context().examples_size();
  TENSORD_CHECK(examples->shape.dim(0) == count);
}

}  // namespace
}  // namespace tensord

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  tensord::TryPredict(bytes);
  tensord::TryPeek(bytes);
  tensord::TrySignatures(bytes);
  tensord::TryExamples(bytes);
  (void)tensord::wire::ParseGetModelMetadataRequest(bytes).ok();
  (void)tensord::wire::ParseGetModelStatusRequest(bytes).ok();
  (void)tensord::wire::ParseReloadConfigRequest(bytes).ok();
  (void)tensord::wire::ParseHealthCheckRequest(bytes).ok();
  return 0;
}
