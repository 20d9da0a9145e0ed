// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/inference.h"

#include <bit>
#include <cstring>

#include "base/protobuf_wire.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/utf8.h"
#include "wire/predict_encode.h"

namespace tensord::wire {
namespace {

using tensor::DType;
using tensor::Signature;
using tensor::TensorView;

constexpr std::string_view kInputs = "inputs";
constexpr std::string_view kClasses = "classes";
constexpr std::string_view kScores = "scores";
constexpr std::string_view kOutputs = "outputs";

template <typename... Pieces>
absl::Status Invalid(const Pieces&... pieces) {
  return absl::InvalidArgumentError(base::Cat(pieces...));
}

std::string_view MethodWord(InferenceMethod method) {
  return method == InferenceMethod::kClassify ? "classification" : "regression";
}

// As the original's DataType_Name: "DT_FLOAT".
std::string EnumName(DType dtype) {
  std::string name = base::Cat("DT_", tensor::DTypeName(dtype));
  for (char& c : name) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return name;
}

// What a signature has, in place of the original's dump of the whole SignatureDef.
std::string Describe(const Signature& signature) {
  std::string text = base::Cat("\"", signature.name, "\" has inputs {");
  for (const tensor::Endpoint& input : signature.inputs) text += base::Cat(" ", input.name);
  text += " } and outputs {";
  for (const tensor::Endpoint& output : signature.outputs) text += base::Cat(" ", output.name);
  return text + " }";
}

absl::Status CheckOutputShape(std::string_view name, const TensorView& tensor, DType dtype,
                              int64_t examples) {
  if (tensor.shape.rank() != 2) {
    return Invalid("Expected Tensor shape: [batch_size num_classes] but got ",
                   tensor.shape.ToString(), " for output \"", name, "\"");
  }
  if (tensor.dtype != dtype) {
    return Invalid("Expected ", name, " Tensor of ", EnumName(dtype),
                   ". Got: ", EnumName(tensor.dtype));
  }
  if (tensor.shape.dim(0) != examples) {
    return Invalid("Expected ", name, " output batch size of ", examples,
                   ". Got: ", tensor.shape.dim(0));
  }
  return absl::OkStatus();
}

absl::Status ReadClasses(const InferenceOutputs& where, std::span<const TensorView> outputs,
                         int64_t examples, InferenceResult* result) {
  if (where.labels >= 0) {
    const TensorView& labels = outputs[static_cast<size_t>(where.labels)];
    RETURN_IF_ERROR(CheckOutputShape(kClasses, labels, DType::kString, examples));
    ASSIGN_OR_RETURN(
        result->labels,
        tensor::StringReader::Open(labels.bytes, static_cast<uint64_t>(labels.shape.elements())));
    result->columns = labels.shape.dim(1);
  }
  if (where.values < 0) return absl::OkStatus();
  const TensorView& scores = outputs[static_cast<size_t>(where.values)];
  RETURN_IF_ERROR(CheckOutputShape(kScores, scores, DType::kFloat, examples));
  if (where.labels >= 0 && result->columns != scores.shape.dim(1)) {
    return Invalid("Tensors class and score should match in dim_size(1). Got ", result->columns,
                   " vs. ", scores.shape.dim(1));
  }
  result->columns = scores.shape.dim(1);
  result->values = scores.bytes;
  return absl::OkStatus();
}

absl::Status ReadRegressions(const TensorView& output, int64_t examples, InferenceResult* result) {
  const tensor::Shape& shape = output.shape;
  if (shape.rank() != 1 && (shape.rank() != 2 || shape.dim(1) != 1)) {
    return Invalid(
        "Expected output Tensor shape to be either [batch_size] or [batch_size, 1] but got ",
        shape.ToString());
  }
  if (shape.dim(0) != examples) {
    return Invalid("Input batch size did not match output batch size: ", examples, " vs. ",
                   shape.dim(0));
  }
  if (output.dtype != DType::kFloat) {
    return Invalid("Expected output Tensor of DT_FLOAT.  Got: ", EnumName(output.dtype));
  }
  result->values = output.bytes;
  return absl::OkStatus();
}

// A float field of proto3: zero is left out, but not the negative one.
void AppendFloatField(uint32_t field, float value, std::string* out) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (bits == 0) return;
  base::AppendTag(field, base::WireType::kFixed32, out);
  out->append(reinterpret_cast<const char*>(&bits), sizeof(bits));
}

// Regression: value = 1. RegressionResult: regressions = 1.
std::string EncodeRegressions(const InferenceResult& result) {
  std::string out;
  std::string regression;
  for (int64_t row = 0; row < result.rows; ++row) {
    regression.clear();
    AppendFloatField(1, result.value(row, 0), &regression);
    base::AppendBytesField(1, regression, &out);
  }
  return out;
}

// Class: label = 1, score = 2. Classifications: classes = 1. ClassificationResult:
// classifications = 1.
std::string EncodeClassifications(const InferenceResult& result) {
  std::string out;
  std::string classifications;
  std::string one;
  for (int64_t row = 0; row < result.rows; ++row) {
    classifications.clear();
    for (int64_t column = 0; column < result.columns; ++column) {
      one.clear();
      const std::string_view label = result.label(row, column);
      if (!label.empty()) base::AppendBytesField(1, base::ToUtf8(label), &one);
      AppendFloatField(2, result.value(row, column), &one);
      base::AppendBytesField(1, one, &classifications);
    }
    base::AppendBytesField(1, classifications, &out);
  }
  return out;
}

std::string EncodeResult(const InferenceResult& result) {
  return result.method == InferenceMethod::kClassify ? EncodeClassifications(result)
                                                     : EncodeRegressions(result);
}

}  // namespace

std::string_view MethodName(InferenceMethod method) {
  return method == InferenceMethod::kClassify ? "tensorflow/serving/classify"
                                              : "tensorflow/serving/regress";
}

absl::StatusOr<InferenceMethod> MethodOf(std::string_view method_name) {
  for (const auto method : {InferenceMethod::kClassify, InferenceMethod::kRegress}) {
    if (method_name == MethodName(method)) return method;
  }
  return absl::UnimplementedError(base::Cat("Unsupported signature method_name: ", method_name,
                                            "; ", MethodName(InferenceMethod::kClassify), " and ",
                                            MethodName(InferenceMethod::kRegress),
                                            " are supported"));
}

absl::StatusOr<InferenceOutputs> CheckInference(const Signature& signature, InferenceMethod method,
                                                bool check_name) {
  const bool classify = method == InferenceMethod::kClassify;
  const std::string_view word = MethodWord(method);
  if (check_name && signature.method_name != MethodName(method)) {
    return Invalid("Expected ", word, " signature method_name to be ", MethodName(method),
                   ". Was: ", signature.method_name);
  }
  if (signature.inputs.size() != 1) {
    return Invalid("Expected one input Tensor. Signature ", Describe(signature));
  }
  const size_t outputs = signature.outputs.size();
  if (classify && outputs != 1 && outputs != 2) {
    return Invalid("Expected one or two output Tensors, found ", outputs, ". Signature ",
                   Describe(signature));
  }
  if (!classify && outputs != 1) {
    return Invalid("Expected one output Tensor. Signature ", Describe(signature));
  }
  if (signature.InputIndex(kInputs) < 0) {
    return Invalid("No ", word, " inputs found in SignatureDef: ", Describe(signature), ", not \"",
                   kInputs, "\"");
  }
  InferenceOutputs where;
  if (classify) {
    where = {.labels = signature.OutputIndex(kClasses), .values = signature.OutputIndex(kScores)};
    if (where.labels < 0 && where.values < 0) {
      return Invalid("Expected classification signature outputs to contain at least one of \"",
                     kClasses, "\" or \"", kScores, "\". Signature was: ", Describe(signature));
    }
    return where;
  }
  where.values = signature.OutputIndex(kOutputs);
  if (where.values < 0) {
    return Invalid("No regression outputs found in SignatureDef: ", Describe(signature), ", not \"",
                   kOutputs, "\"");
  }
  return where;
}

std::string_view InferenceResult::label(int64_t row, int64_t column) const {
  if (!labels.has_value()) return {};
  return (*labels)[static_cast<uint64_t>(row * columns + column)];
}

float InferenceResult::value(int64_t row, int64_t column) const {
  if (values.empty()) return 0;
  float value = 0;
  const auto at = static_cast<size_t>(row * columns + column) * sizeof(value);
  std::memcpy(&value, values.data() + at, sizeof(value));
  return value;
}

absl::StatusOr<InferenceResult> ReadInference(InferenceMethod method, const InferenceOutputs& where,
                                              std::span<const TensorView> outputs,
                                              int64_t examples) {
  InferenceResult result{.method = method, .rows = examples, .labels = {}, .values = {}};
  RETURN_IF_ERROR(
      method == InferenceMethod::kClassify
          ? ReadClasses(where, outputs, examples, &result)
          : ReadRegressions(outputs[static_cast<size_t>(where.values)], examples, &result));
  return result;
}

std::string EncodeInferenceResponse(const tensor::ModelSpec& answered,
                                    const InferenceResult& result) {
  std::string out;
  base::AppendBytesField(1, EncodeResult(result), &out);
  base::AppendBytesField(2, EncodeModelSpec(answered), &out);
  return out;
}

// InferenceResult: model_spec = 1, classification_result = 2, regression_result = 3.
void AppendMultiInferenceResult(const tensor::ModelSpec& answered, const InferenceResult& result,
                                std::string* response) {
  std::string one;
  base::AppendBytesField(1, EncodeModelSpec(answered), &one);
  base::AppendBytesField(result.method == InferenceMethod::kClassify ? 2 : 3, EncodeResult(result),
                         &one);
  base::AppendBytesField(1, one, response);
}

}  // namespace tensord::wire
