// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// A length of JSON text on the first line, then a body of an inference request over REST. Tensors
// that come out must be consistent, and so must an answer made of them.

#include <charconv>
#include <string>
#include <string_view>

#include "base/check.h"
#include "tensor/string_layout.h"
#include "wire/bind.h"
#include "wire/json/cursor.h"
#include "wire/oip/cold.h"
#include "wire/oip/infer_encode.h"
#include "wire/oip/infer_json.h"
#include "wire/oip/infer_print.h"

namespace tensord {
namespace {

void CheckTensor(const tensor::TensorView& tensor) {
  if (tensor.dtype == tensor::DType::kString) {
    const auto elements = static_cast<uint64_t>(tensor.shape.elements());
    TENSORD_CHECK(tensor::StringReader::Open(tensor.bytes, elements).ok());
    return;
  }
  TENSORD_CHECK(*tensor::FixedBytes(tensor.dtype, tensor.shape) == tensor.bytes.size());
  if (tensor.dtype != tensor::DType::kBool) return;
  for (const std::byte value : tensor.bytes) TENSORD_CHECK(value <= std::byte{1});
}

void Try(std::string_view header, std::string_view body) {
  (void)wire::ReadOipIndexBody(body);
  (void)wire::CheckOipLoadBody(body);
  const auto json_bytes = wire::OipJsonBytes(header, body.size());
  const auto request = wire::ParseOipInfer(body, json_bytes.value_or(body.size()));
  if (!request.ok()) return;
  const auto& inputs = request->request.inputs;
  for (const tensor::NamedTensor& input : inputs) CheckTensor(input.tensor);
  const wire::OipAnswered answered{.id = request->id, .model = "m", .version = 1};
  for (const bool binary : {false, true}) {
    const std::vector<bool> forms(inputs.size(), binary);
    const auto answer = wire::PrintOipResponse(answered, inputs, forms, wire::NonFinite::kNull);
    if (!answer.ok()) continue;  // Strings that are no text.
    TENSORD_CHECK(answer->json_bytes.has_value() == (binary && !inputs.empty()));
    const std::string_view text =
        std::string_view(answer->text).substr(0, answer->json_bytes.value_or(answer->text.size()));
    wire::JsonCursor cursor(text);
    TENSORD_CHECK(cursor.ReadValue().ok());
    TENSORD_CHECK(cursor.at() == cursor.end());
    // An answer has a request's form but for the names of its lists.
    std::string again = answer->text;
    const size_t at = again.find("\"outputs\":[");
    TENSORD_CHECK(at != std::string::npos);
    again.replace(at, 9, "\"inputs\" ");
    const auto reread = wire::ParseOipInfer(again, text.size());
    if (text.find("null") == std::string_view::npos) TENSORD_CHECK(reread.ok());
  }
  TENSORD_CHECK(wire::EncodeOipResponse(answered, inputs, false).ok());
}

}  // namespace
}  // namespace tensord

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t line = std::min(input.find('\n'), size);
  tensord::Try(input.substr(0, line), input.substr(std::min(line + 1, size)));
  return 0;
}
