// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// A first line of dtype letters, one an input (named a, b, ...), then a REST predict body. Tensors
// that come out must be consistent, and their text must be JSON again.

#include <string>
#include <string_view>

#include "base/check.h"
#include "tensor/string_layout.h"
#include "wire/json/cursor.h"
#include "wire/json/examples.h"
#include "wire/json/print.h"
#include "wire/json/request.h"

namespace tensord {
namespace {

// 'A' is the first dtype, and so on; anything else is float.
tensor::Signature SignatureOf(std::string_view letters) {
  constexpr size_t kInputsMax = 4;
  tensor::Signature signature;
  for (const char letter : letters.substr(0, kInputsMax)) {
    tensor::Endpoint input;
    input.name = std::string(1, static_cast<char>('a' + signature.inputs.size()));
    const bool known = letter >= 'A' && letter <= 'X';
    input.dtype = static_cast<tensor::DType>(known ? letter - 'A' : 1);
    signature.inputs.push_back(std::move(input));
  }
  return signature;
}

void CheckTensor(const tensor::TensorView& tensor) {
  if (tensor.dtype == tensor::DType::kString) {
    const auto elements = static_cast<uint64_t>(tensor.shape.elements());
    TENSORD_CHECK(tensor::StringReader::Open(tensor.bytes, elements).ok());
  } else {
    TENSORD_CHECK(*tensor::FixedBytes(tensor.dtype, tensor.shape) == tensor.bytes.size());
  }
}

void Try(std::string_view letters, std::string_view body) {
  const auto json = wire::ScanJsonRequest(body);
  if (!json.ok()) return;
  if (const auto examples = wire::JsonExamples(*json); examples.ok()) {
    CheckTensor(examples->view());
  }
  const tensor::Signature signature = SignatureOf(letters);  // Outlives the request.
  const auto request = wire::JsonTensors(*json, signature);
  if (!request.ok()) return;
  for (const tensor::NamedTensor& input : request->inputs) CheckTensor(input.tensor);
  const auto text = wire::PrintPredictions(json->row_format, request->inputs);
  if (!text.ok()) return;  // Empty tensors of types without a JSON form, or fewer inputs by row.
  wire::JsonCursor cursor(*text);
  TENSORD_CHECK(cursor.ReadValue().ok());
  TENSORD_CHECK(cursor.at() == cursor.end());
}

}  // namespace
}  // namespace tensord

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t line = std::min(input.find('\n'), size);
  tensord::Try(input.substr(0, line), input.substr(std::min(line + 1, size)));
  return 0;
}
