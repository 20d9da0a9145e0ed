// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/oip/infer_print.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "base/status_macros.h"
#include "base/text.h"
#include "base/utf8.h"
#include "tensor/string_layout.h"
#include "wire/json/number.h"
#include "wire/json/print.h"
#include "wire/oip/datatype.h"
#include "wire/oip/raw_tensor.h"

namespace tensord::wire {
namespace {

using tensor::DType;
using tensor::NamedTensor;
using tensor::TensorView;

// JSON texts are UTF-8, whatever a client or a model calls itself.
void AppendText(std::string_view text, std::string* out) {
  AppendJsonString(base::ToUtf8(text), out);
}

// Prints value after value of a tensor; print(value, out) is false for one that has no form.
template <typename T, typename Print>
bool PrintAll(std::span<const std::byte> bytes, std::string* out, Print print) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    if (at > 0) out->push_back(',');
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    if (!print(value, out)) return false;
  }
  return true;
}

template <typename T>
bool PrintIntegers(std::span<const std::byte> bytes, std::string* out) {
  return PrintAll<T>(bytes, out, [](T value, std::string* to) {
    base::AppendPiece(to, static_cast<int64_t>(value));
    return true;
  });
}

template <typename T, typename Real>
bool PrintReals(std::span<const std::byte> bytes, NonFinite non_finite, std::string* out,
                Real real) {
  return PrintAll<T>(bytes, out, [&](T bits, std::string* to) {
    const auto value = real(bits);
    if (std::isfinite(value)) {
      AppendReal(value, to);
      return true;
    }
    to->append("null");
    return non_finite == NonFinite::kNull;
  });
}

bool PrintNumbers(const TensorView& tensor, NonFinite non_finite, std::string* out) {
  const std::span<const std::byte> bytes = tensor.bytes;
  switch (tensor.dtype) {
    case DType::kFloat:
      return PrintReals<float>(bytes, non_finite, out, [](float value) { return value; });
    case DType::kDouble:
      return PrintReals<double>(bytes, non_finite, out, [](double value) { return value; });
    case DType::kHalf:
      return PrintReals<uint16_t>(bytes, non_finite, out, HalfValue);
    case DType::kBfloat16:
      return PrintReals<uint16_t>(bytes, non_finite, out, Bfloat16Value);
    case DType::kInt8:
      return PrintIntegers<int8_t>(bytes, out);
    case DType::kUint8:
      return PrintIntegers<uint8_t>(bytes, out);
    case DType::kInt16:
      return PrintIntegers<int16_t>(bytes, out);
    case DType::kUint16:
      return PrintIntegers<uint16_t>(bytes, out);
    case DType::kInt32:
      return PrintIntegers<int32_t>(bytes, out);
    case DType::kUint32:
      return PrintIntegers<uint32_t>(bytes, out);
    case DType::kInt64:
      return PrintIntegers<int64_t>(bytes, out);
    case DType::kUint64:
      return PrintAll<uint64_t>(bytes, out, [](uint64_t value, std::string* to) {
        base::AppendPiece(to, value);
        return true;
      });
    default:
      return PrintAll<uint8_t>(bytes, out, [](uint8_t value, std::string* to) {
        to->append(value != 0 ? "true" : "false");
        return true;
      });
  }
}

absl::Status PrintStrings(const NamedTensor& output, std::string* out) {
  const auto elements = static_cast<uint64_t>(output.tensor.shape.elements());
  ASSIGN_OR_RETURN(const tensor::StringReader strings,
                   tensor::StringReader::Open(output.tensor.bytes, elements));
  for (uint64_t i = 0; i < elements; ++i) {
    if (i > 0) out->push_back(',');
    if (base::ToUtf8(strings[i]) != strings[i]) {
      return absl::InvalidArgumentError(
          base::Cat("element ", i, " of output \"", output.name,
                    "\" is not UTF-8, which JSON has no form for; ask for it as binary data "
                    "(\"parameters\": {\"binary_data\": true})"));
    }
    AppendJsonString(strings[i], out);
  }
  return absl::OkStatus();
}

absl::Status PrintData(const NamedTensor& output, NonFinite non_finite, std::string* out) {
  out->append("\"data\":[");
  if (output.tensor.shape.elements() > 0) {
    if (output.tensor.dtype == DType::kString) {
      RETURN_IF_ERROR(PrintStrings(output, out));
    } else if (!PrintNumbers(output.tensor, non_finite, out)) {
      return absl::InvalidArgumentError(base::Cat(
          "output \"", output.name,
          "\" holds NaN or an infinity, which JSON has no form for; ask for it as binary data "
          "(\"parameters\": {\"binary_data\": true}), or start the server with "
          "--oip_json_non_finite=null"));
    }
  }
  out->push_back(']');
  return absl::OkStatus();
}

void PrintHead(const NamedTensor& output, std::string* out) {
  out->append("{\"name\":");
  AppendText(output.name, out);
  out->append(base::Cat(",\"datatype\":\"", OipName(output.tensor.dtype), "\",\"shape\":["));
  bool first = true;
  for (const int64_t dim : output.tensor.shape.dims()) {
    if (!std::exchange(first, false)) out->push_back(',');
    base::AppendPiece(out, dim);
  }
  out->append("],");
}

}  // namespace

absl::StatusOr<OipBody> PrintOipResponse(const OipAnswered& answered,
                                         std::span<const NamedTensor> outputs,
                                         const std::vector<bool>& binary, NonFinite non_finite) {
  std::string out = "{";
  if (!answered.id.empty()) {
    out.append("\"id\":");
    AppendText(answered.id, &out);
    out.push_back(',');
  }
  out.append("\"model_name\":");
  AppendText(answered.model, &out);
  out.append(base::Cat(",\"model_version\":\"", answered.version, "\",\"outputs\":["));
  bool any = false;
  uint64_t binary_bytes = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i > 0) out.push_back(',');
    ASSIGN_OR_RETURN(const uint64_t bytes, RawTensorBytes(outputs[i]));
    PrintHead(outputs[i], &out);
    if (binary[i]) {
      any = true;
      binary_bytes += bytes;
      out.append(base::Cat("\"parameters\":{\"binary_data_size\":", bytes, "}"));
    } else {
      RETURN_IF_ERROR(PrintData(outputs[i], non_finite, &out));
    }
    out.push_back('}');
  }
  out.append("]}");
  OipBody body;
  if (any) body.json_bytes = out.size();
  out.reserve(out.size() + binary_bytes);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (binary[i]) AppendRawTensor(outputs[i].tensor, &out);
  }
  body.text = std::move(out);
  return body;
}

}  // namespace tensord::wire
