// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "json.h"

#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cstring>
#include <span>
#include <vector>

#include "base/status_macros.h"
#include "base/text.h"

namespace tensord::peers {
namespace {

using rapidjson::Value;
using tensorflow::TensorProto;
using Writer = rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::UTF8<>,
                                 rapidjson::CrtAllocator, rapidjson::kWriteNanAndInfFlag>;

absl::Status AddLeaves(const Value& value, tensor::DType dtype, TensorProto* proto) {
  if (value.IsArray()) {
    for (const Value& element : value.GetArray()) {
      RETURN_IF_ERROR(AddLeaves(element, dtype, proto));
    }
    return absl::OkStatus();
  }
  if (!value.IsNumber()) return absl::InvalidArgumentError("a value is no number");
  if (dtype == tensor::DType::kFloat) {
    proto->add_float_val(static_cast<float>(value.GetDouble()));
  } else if (dtype == tensor::DType::kInt32 && value.IsInt()) {
    proto->add_int_val(value.GetInt());
  } else if (dtype == tensor::DType::kInt64 && value.IsInt64()) {
    proto->add_int64_val(value.GetInt64());
  } else {
    return absl::InvalidArgumentError("a value of another type than the input's");
  }
  return absl::OkStatus();
}

absl::Status ReadTensor(const Value& value, const tensor::Endpoint& endpoint,
                        tensorflow::serving::PredictRequest* request) {
  TensorProto& proto = (*request->mutable_inputs())[endpoint.name];
  proto.set_dtype(static_cast<tensorflow::DataType>(endpoint.dtype));
  for (const Value* at = &value; at->IsArray() && !at->Empty(); at = &(*at)[0]) {
    proto.mutable_tensor_shape()->add_dim()->set_size(at->Size());
  }
  return AddLeaves(value, endpoint.dtype, &proto);
}

template <typename Number>
std::vector<Number> Numbers(const TensorProto& proto) {
  std::vector<Number> numbers(proto.tensor_content().size() / sizeof(Number));
  std::memcpy(numbers.data(), proto.tensor_content().data(), numbers.size() * sizeof(Number));
  return numbers;
}

void WriteNumber(float number, Writer* writer) { writer->Double(static_cast<double>(number)); }
void WriteNumber(int32_t number, Writer* writer) { writer->Int(number); }
void WriteNumber(int64_t number, Writer* writer) { writer->Int64(number); }

template <typename Number>
void WriteArray(const TensorProto& proto, std::span<const Number> numbers, int axis,
                Writer* writer) {
  if (axis == proto.tensor_shape().dim_size()) return WriteNumber(numbers[0], writer);
  const auto size = static_cast<size_t>(proto.tensor_shape().dim(axis).size());
  writer->StartArray();
  for (size_t i = 0; i < size; ++i) {
    const size_t part = numbers.size() / size;
    WriteArray(proto, numbers.subspan(i * part, part), axis + 1, writer);
  }
  writer->EndArray();
}

void WriteTensor(const TensorProto& proto, Writer* writer) {
  if (proto.dtype() == tensorflow::DT_INT32) {
    WriteArray<int32_t>(proto, Numbers<int32_t>(proto), 0, writer);
  } else if (proto.dtype() == tensorflow::DT_INT64) {
    WriteArray<int64_t>(proto, Numbers<int64_t>(proto), 0, writer);
  } else {
    WriteArray<float>(proto, Numbers<float>(proto), 0, writer);
  }
}

}  // namespace

absl::Status ReadJson(const char* text, const tensor::Signature& signature,
                      tensorflow::serving::PredictRequest* request, bool* row_format) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseFullPrecisionFlag | rapidjson::kParseNanAndInfFlag>(text);
  if (document.HasParseError() || !document.IsObject()) {
    return absl::InvalidArgumentError("the body is no JSON object");
  }
  const auto instances = document.FindMember("instances");
  *row_format = instances != document.MemberEnd();
  if (*row_format) {
    if (signature.inputs.size() != 1) {
      return absl::UnimplementedError("instances for a signature of several inputs");
    }
    return ReadTensor(instances->value, signature.inputs[0], request);
  }
  const auto inputs = document.FindMember("inputs");
  if (inputs == document.MemberEnd() || !inputs->value.IsObject()) {
    return absl::InvalidArgumentError("neither instances nor named inputs");
  }
  for (const tensor::Endpoint& endpoint : signature.inputs) {
    const auto input = inputs->value.FindMember(endpoint.name.c_str());
    if (input == inputs->value.MemberEnd()) {
      return absl::InvalidArgumentError(base::Cat("input ", endpoint.name, " is missing"));
    }
    RETURN_IF_ERROR(ReadTensor(input->value, endpoint, request));
  }
  return absl::OkStatus();
}

std::string WriteJson(const tensorflow::serving::PredictResponse& response, bool row_format) {
  rapidjson::StringBuffer buffer;
  Writer writer(buffer);
  writer.StartObject();
  writer.Key(row_format ? "predictions" : "outputs");
  const bool named = response.outputs_size() != 1;
  if (named) writer.StartObject();
  for (const auto& [name, proto] : response.outputs()) {
    if (named) writer.Key(name.c_str());
    WriteTensor(proto, &writer);
  }
  if (named) writer.EndObject();
  writer.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace tensord::peers
