// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/request.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/protobuf_wire.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "wire/oip/datatype.h"

namespace tensord::bench {
namespace {

using base::AppendBytesField;
using base::AppendVarintField;
using tensor::DType;

absl::StatusOr<DType> ParseDType(std::string_view name) {
  for (int number = 1; number <= 23; ++number) {
    const auto dtype = static_cast<DType>(number);
    if (tensor::IsServable(dtype) && tensor::DTypeName(dtype) == name) return dtype;
  }
  return absl::InvalidArgumentError(
      base::Cat("'", name, "' is no type; use float, int32, uint8, string, ..."));
}

absl::StatusOr<tensor::Shape> ParseDims(std::string_view text) {
  std::vector<int64_t> dims;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    int64_t dim = 0;
    const auto end = std::from_chars(text.data(), text.data() + comma, dim);
    if (end.ec != std::errc() || end.ptr != text.data() + comma) {
      return absl::InvalidArgumentError(
          base::Cat("'", text.substr(0, comma), "' is no dim; write dims as 1,224,224,3"));
    }
    dims.push_back(dim);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return tensor::Shape::Make(dims);
}

template <typename Value>
std::string Repeat(Value value, int64_t count) {
  std::string bytes(static_cast<size_t>(count) * sizeof(Value), '\0');
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof(Value), &value, sizeof(Value));
  }
  return bytes;
}

std::string Content(const MadeInput& input) {
  const int64_t count = input.shape.elements();
  if (input.dtype == DType::kFloat) return Repeat(0.5f, count);
  if (input.dtype == DType::kDouble) return Repeat(0.5, count);
  if (input.dtype == DType::kInt32) return Repeat(int32_t{1}, count);
  if (input.dtype == DType::kInt64) return Repeat(int64_t{1}, count);
  return Repeat(uint8_t{0}, count * static_cast<int64_t>(tensor::ElementBytes(input.dtype)));
}

std::string_view JsonElement(DType dtype) {
  if (dtype == DType::kString) return "\"\"";
  if (dtype == DType::kBool) return "false";
  return dtype == DType::kFloat || dtype == DType::kDouble ? "0.5" : "1";
}

void AppendJson(const MadeInput& input, int axis, std::string* out) {
  if (axis == input.shape.rank()) {
    out->append(JsonElement(input.dtype));
    return;
  }
  out->push_back('[');
  for (int64_t i = 0; i < input.shape.dim(axis); ++i) {
    if (i > 0) out->push_back(',');
    AppendJson(input, axis + 1, out);
  }
  out->push_back(']');
}

std::string TensorProto(const MadeInput& input) {
  std::string shape;
  for (const int64_t dim : input.shape.dims()) {
    std::string size;
    AppendVarintField(1, static_cast<uint64_t>(dim), &size);
    AppendBytesField(2, size, &shape);
  }
  std::string proto;
  AppendVarintField(1, static_cast<uint64_t>(input.dtype), &proto);
  AppendBytesField(2, shape, &proto);
  if (input.dtype == DType::kString) {
    for (int64_t i = 0; i < input.shape.elements(); ++i) AppendBytesField(8, "", &proto);
  } else {
    AppendBytesField(4, Content(input), &proto);
  }
  return proto;
}

absl::StatusOr<std::string> OipTypeOf(const MadeInput& input) {
  const std::string_view name = wire::OipName(input.dtype);
  if (!name.empty()) return std::string(name);
  return absl::InvalidArgumentError(
      base::Cat("input '", input.name, "' is of type ", tensor::DTypeName(input.dtype),
                ", which the Open Inference Protocol has no name for"));
}

std::string RawContent(const MadeInput& input) {
  // Each empty string is its length.
  if (input.dtype == DType::kString) return Repeat(uint32_t{0}, input.shape.elements());
  return Content(input);
}

}  // namespace

absl::StatusOr<MadeInput> ParseInput(std::string_view text) {
  const size_t first = text.find(':');
  const size_t second = text.find(':', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) {
    return absl::InvalidArgumentError(
        base::Cat("'", text, "' is no input; write name:type:dims, such as x:float:1,784"));
  }
  MadeInput input{.name = std::string(text.substr(0, first)), .shape = {}};
  ASSIGN_OR_RETURN(input.dtype, ParseDType(text.substr(first + 1, second - first - 1)));
  ASSIGN_OR_RETURN(input.shape, ParseDims(text.substr(second + 1)));
  return input;
}

std::string MakePredictRequest(std::string_view model, std::string_view signature,
                               const std::vector<MadeInput>& inputs) {
  std::string spec;
  AppendBytesField(1, model, &spec);
  if (!signature.empty()) AppendBytesField(3, signature, &spec);
  std::string request;
  AppendBytesField(1, spec, &request);
  for (const MadeInput& input : inputs) {
    std::string entry;
    AppendBytesField(1, input.name, &entry);
    AppendBytesField(2, TensorProto(input), &entry);
    AppendBytesField(2, entry, &request);
  }
  return request;
}

std::string MakePredictJson(std::string_view signature, const std::vector<MadeInput>& inputs) {
  std::string json = "{";
  if (!signature.empty()) json += base::Cat("\"signature_name\":\"", signature, "\",");
  json += "\"inputs\":{";
  for (size_t i = 0; i < inputs.size(); ++i) {
    json += base::Cat(i > 0 ? "," : "", "\"", inputs[i].name, "\":");
    AppendJson(inputs[i], 0, &json);
  }
  return json + "}}";
}

absl::StatusOr<std::string> MakeOipRequest(std::string_view model, std::string_view signature,
                                           const std::vector<MadeInput>& inputs) {
  std::string request;
  AppendBytesField(1, model, &request);
  if (!signature.empty()) {
    std::string value;
    AppendBytesField(3, signature, &value);
    std::string entry;
    AppendBytesField(1, "signature_name", &entry);
    AppendBytesField(2, value, &entry);
    AppendBytesField(4, entry, &request);
  }
  for (const MadeInput& input : inputs) {
    ASSIGN_OR_RETURN(const std::string type, OipTypeOf(input));
    std::string tensor;
    AppendBytesField(1, input.name, &tensor);
    AppendBytesField(2, type, &tensor);
    for (const int64_t dim : input.shape.dims()) {
      AppendVarintField(3, static_cast<uint64_t>(dim), &tensor);
    }
    AppendBytesField(5, tensor, &request);
  }
  for (const MadeInput& input : inputs) AppendBytesField(7, RawContent(input), &request);
  return request;
}

absl::StatusOr<std::string> MakeOipJson(std::string_view signature,
                                        const std::vector<MadeInput>& inputs) {
  std::string json = "{";
  if (!signature.empty()) {
    json += base::Cat("\"parameters\":{\"signature_name\":\"", signature, "\"},");
  }
  json += "\"inputs\":[";
  for (size_t i = 0; i < inputs.size(); ++i) {
    ASSIGN_OR_RETURN(const std::string type, OipTypeOf(inputs[i]));
    json += base::Cat(i > 0 ? "," : "", "{\"name\":\"", inputs[i].name, "\",\"datatype\":\"", type,
                      "\",\"shape\":[");
    for (int axis = 0; axis < inputs[i].shape.rank(); ++axis) {
      json += base::Cat(axis > 0 ? "," : "", inputs[i].shape.dim(axis));
    }
    json += "],\"data\":";
    const bool scalar = inputs[i].shape.rank() == 0;
    if (scalar) json += "[";
    AppendJson(inputs[i], 0, &json);
    json += scalar ? "]}" : "}";
  }
  return json + "]}";
}

absl::StatusOr<std::vector<MadeInput>> MakeInputs(const tensor::Signature& signature,
                                                  int64_t rows) {
  std::vector<MadeInput> inputs;
  for (const tensor::Endpoint& endpoint : signature.inputs) {
    if (endpoint.default_value.has_value()) continue;
    if (!endpoint.dense || !tensor::IsServable(endpoint.dtype)) {
      return absl::InvalidArgumentError(
          base::Cat("input '", endpoint.name, "' of signature '", signature.name,
                    "' is not a plain tensor; choose another --signature"));
    }
    std::vector<int64_t> dims = endpoint.shape.dims;
    if (endpoint.shape.unknown_rank) dims = {-1};
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] < 0) dims[i] = i == 0 ? rows : 1;
    }
    MadeInput input{.name = endpoint.name, .dtype = endpoint.dtype, .shape = {}};
    ASSIGN_OR_RETURN(input.shape, tensor::Shape::Make(dims));
    inputs.push_back(std::move(input));
  }
  return inputs;
}

Request MakeGrpcRequest(std::string_view authority, std::string_view path, std::string_view message,
                        const HeaderList& headers, absl::Duration deadline, bool tls) {
  Request request{.fields = {{":method", "POST"},
                             {":scheme", tls ? "https" : "http"},
                             {":path", std::string(path)},
                             {":authority", std::string(authority)},
                             {"te", "trailers"},
                             {"content-type", "application/grpc"},
                             {"user-agent", "tensord-bench"}},
                  .bytes = {}};
  if (deadline != absl::InfiniteDuration()) {
    // At most eight digits, so an hour has to do with milliseconds.
    const bool fine = deadline < absl::Seconds(99);
    request.fields.emplace_back(
        "grpc-timeout",
        fine ? base::Cat(absl::ToInt64Microseconds(deadline), "u")
             : base::Cat(std::min<int64_t>(absl::ToInt64Milliseconds(deadline), 99'999'999), "m"));
  }
  request.fields.insert(request.fields.end(), headers.begin(), headers.end());
  const auto size = static_cast<uint32_t>(message.size());
  request.bytes = {0, static_cast<char>(size >> 24), static_cast<char>(size >> 16),
                   static_cast<char>(size >> 8), static_cast<char>(size)};
  request.bytes += message;
  return request;
}

Request MakeRestRequest(std::string_view authority, std::string_view method, std::string_view path,
                        std::string_view body, const HeaderList& headers, bool one_shot) {
  std::string bytes = base::Cat(method, " ", path, " HTTP/1.1\r\nHost: ", authority, "\r\n");
  if (method == "POST") {
    bytes += base::Cat("Content-Type: application/json\r\nContent-Length: ", body.size(), "\r\n");
  }
  if (one_shot) bytes += "Connection: close\r\n";
  for (const auto& [name, value] : headers) bytes += base::Cat(name, ": ", value, "\r\n");
  return {.fields = {}, .bytes = base::Cat(bytes, "\r\n", body)};
}

}  // namespace tensord::bench
