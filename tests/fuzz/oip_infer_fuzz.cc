// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// Bytes as ModelInferRequest and as the protocol's rare requests. What the walk takes must be
// consistent, agree with protobuf's own parser, and go through the encoder and back.

#include <string>
#include <string_view>

#include "base/check.h"
#include "tensor/string_layout.h"
#include "tensord/open_inference.pb.h"
#include "wire/oip/cold.h"
#include "wire/oip/datatype.h"
#include "wire/oip/infer_encode.h"
#include "wire/oip/infer_walk.h"

namespace tensord {
namespace {

void CheckTensor(const tensor::TensorView& tensor) {
  TENSORD_CHECK(!wire::OipName(tensor.dtype).empty());
  if (tensor.dtype == tensor::DType::kString) {
    const auto elements = static_cast<uint64_t>(tensor.shape.elements());
    TENSORD_CHECK(tensor::StringReader::Open(tensor.bytes, elements).ok());
    return;
  }
  TENSORD_CHECK(*tensor::FixedBytes(tensor.dtype, tensor.shape) == tensor.bytes.size());
  if (tensor.dtype != tensor::DType::kBool) return;
  for (const std::byte value : tensor.bytes) TENSORD_CHECK(value <= std::byte{1});
}

// Protobuf refuses texts that are not UTF-8, which the walk does not look at.
void CompareWithProtobuf(std::string_view body, const wire::OipRequest& oip) {
  inference::ModelInferRequest official;
  if (!official.ParseFromArray(body.data(), static_cast<int>(body.size()))) return;
  TENSORD_CHECK(official.model_name() == oip.request.spec.name);
  TENSORD_CHECK(official.id() == oip.id);
  TENSORD_CHECK(official.inputs_size() == static_cast<int>(oip.request.inputs.size()));
  TENSORD_CHECK(official.outputs_size() == static_cast<int>(oip.request.output_filter.size()));
  for (int i = 0; i < official.inputs_size(); ++i) {
    const tensor::NamedTensor& input = oip.request.inputs[static_cast<size_t>(i)];
    TENSORD_CHECK(official.inputs(i).name() == input.name);
    TENSORD_CHECK(official.inputs(i).datatype() == wire::OipName(input.tensor.dtype));
    TENSORD_CHECK(official.inputs(i).shape_size() == input.tensor.shape.rank());
  }
}

void Try(std::string_view body) {
  (void)wire::ParseOipModelRequest(body);
  (void)wire::ParseOipIndexRequest(body);
  (void)wire::ParseOipRepositoryRequest(body, false);
  const auto oip = wire::WalkOipInfer(body);
  if (!oip.ok()) return;
  for (const tensor::NamedTensor& input : oip->request.inputs) CheckTensor(input.tensor);
  CompareWithProtobuf(body, *oip);
  const wire::OipAnswered answered{.id = oip->id, .model = "m", .version = 1};
  for (const bool raw : {false, true}) {
    const auto bytes = wire::EncodeOipResponse(answered, oip->request.inputs, raw);
    TENSORD_CHECK(bytes.ok());
    inference::ModelInferResponse response;
    if (!response.ParseFromString(*bytes)) continue;
    TENSORD_CHECK(response.outputs_size() == static_cast<int>(oip->request.inputs.size()));
  }
}

}  // namespace
}  // namespace tensord

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tensord::Try({reinterpret_cast<const char*>(data), size});
  return 0;
}
