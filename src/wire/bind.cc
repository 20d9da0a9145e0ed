// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/bind.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "base/text.h"

namespace tensord::wire {
namespace {

using tensor::Endpoint;
using tensor::NamedTensor;
using tensor::Signature;
using Names = std::vector<std::string_view>;

std::string Join(const Names& names) {
  std::string text;
  for (const std::string_view name : names) {
    if (!text.empty()) text += ',';
    text += name;
  }
  return text;
}

template <typename Items>
Names NamesOf(const Items& items) {
  Names names;
  for (const auto& item : items) names.push_back(item.name);
  std::sort(names.begin(), names.end());
  return names;
}

Names Without(const Names& all, const Names& some) {
  Names rest;
  std::set_difference(all.begin(), all.end(), some.begin(), some.end(), std::back_inserter(rest));
  return rest;
}

bool HasDefaults(const Signature& signature) {
  return std::any_of(signature.inputs.begin(), signature.inputs.end(),
                     [](const Endpoint& input) { return input.default_value.has_value(); });
}

absl::Status CheckCount(const tensor::PredictRequest& request, const Signature& signature) {
  const size_t sent = request.inputs.size();
  const size_t wanted = signature.inputs.size();
  if (sent == wanted || (sent < wanted && HasDefaults(signature))) return absl::OkStatus();
  const Names came = NamesOf(request.inputs);
  const Names expected = NamesOf(signature.inputs);
  return absl::InvalidArgumentError(
      base::Cat("input size does not match signature: ", sent, "!=", wanted, " len({", Join(came),
                "}) != len({", Join(expected), "}). Sent extra: {", Join(Without(came, expected)),
                "}. Missing but required: {", Join(Without(expected, came)), "}."));
}

absl::Status MissingInput(const Endpoint& input, const tensor::PredictRequest& request,
                          const Signature& signature) {
  Names with_default;
  for (const Endpoint& other : signature.inputs) {
    if (other.default_value.has_value()) with_default.push_back(other.name);
  }
  return absl::InvalidArgumentError(base::Cat(
      "Signature input alias: ", input.name, "(feed name: ", input.tensor_name,
      ") not found in request and no default value provided. Inputs expected to be in "
      "the request {",
      Join(NamesOf(request.inputs)), "}, or default input alias set: ", Join(with_default)));
}

absl::Status UnknownInputs(const tensor::PredictRequest& request, const Signature& signature) {
  const Names came = NamesOf(request.inputs);
  const Names unknown = Without(came, NamesOf(signature.inputs));
  return absl::InvalidArgumentError(
      base::Cat("Inputs contains invalid name. Used request inputs: ", Join(Without(came, unknown)),
                ", request input: ", Join(came)));
}

std::string_view WhyNotDense(const Endpoint& endpoint) {
  if (endpoint.tensor_name.empty()) return "not a dense tensor";
  if (endpoint.dtype == tensor::DType::kInvalid) return "declared without a type";
  return tensor::DTypeName(endpoint.dtype);
}

absl::Status CannotFeed(const Endpoint& input, const Signature& signature) {
  return absl::InvalidArgumentError(base::Cat("input \"", input.name, "\" of signature \"",
                                              signature.name, "\" is ", WhyNotDense(input),
                                              " and cannot be fed"));
}

// Fills call->inputs and counts how many of the request's were used.
absl::Status BindInputs(const tensor::PredictRequest& request, const Signature& signature,
                        BoundCall* call) {
  size_t used = 0;
  call->inputs.reserve(signature.inputs.size());
  for (const Endpoint& input : signature.inputs) {
    const auto at = std::find_if(request.inputs.begin(), request.inputs.end(),
                                 [&](const NamedTensor& sent) { return sent.name == input.name; });
    if (at != request.inputs.end()) {
      ++used;
      call->inputs.push_back(at->tensor);
    } else if (input.default_value.has_value()) {
      call->inputs.push_back(input.default_value->view());
    } else {
      return MissingInput(input, request, signature);
    }
    if (!input.dense) return CannotFeed(input, signature);
  }
  return used == request.inputs.size() ? absl::OkStatus() : UnknownInputs(request, signature);
}

absl::Status CheckOutput(const Endpoint& output, const Signature& signature) {
  if (output.dense) return absl::OkStatus();
  return absl::InvalidArgumentError(base::Cat(
      "output \"", output.name, "\" of signature \"", signature.name, "\" is ", WhyNotDense(output),
      " and cannot be fetched; name other outputs in output_filter"));
}

absl::Status BindOutputs(const tensor::PredictRequest& request, const Signature& signature,
                         BoundCall* call) {
  std::vector<bool> seen(signature.outputs.size());
  for (const std::string_view alias : request.output_filter) {
    const int index = signature.OutputIndex(alias);
    if (index < 0) {
      return absl::InvalidArgumentError(base::Cat(
          "output tensor alias not found in signature: ", alias,
          " Outputs expected to be in the set {", Join(NamesOf(signature.outputs)), "}."));
    }
    if (seen[static_cast<size_t>(index)]) {
      return absl::InvalidArgumentError(base::Cat("duplicate output tensor alias: ", alias));
    }
    seen[static_cast<size_t>(index)] = true;
    call->outputs.push_back(index);
  }
  if (request.output_filter.empty()) {
    for (size_t i = 0; i < signature.outputs.size(); ++i) {
      call->outputs.push_back(static_cast<int>(i));
    }
  }
  for (const int index : call->outputs) {
    RETURN_IF_ERROR(CheckOutput(signature.outputs[static_cast<size_t>(index)], signature));
  }
  return absl::OkStatus();
}

absl::Status CheckTypes(const BoundCall& call, const Signature& signature) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Endpoint& input = signature.inputs[i];
    if (call.inputs[i].dtype == input.dtype) continue;
    return absl::InvalidArgumentError(
        base::Cat("Expects arg[", i, "] to be ", tensor::DTypeName(input.dtype), " but ",
                  tensor::DTypeName(call.inputs[i].dtype), " is provided: input \"", input.name,
                  "\" of signature \"", signature.name, "\""));
  }
  return absl::OkStatus();
}

int64_t CommonRows(const std::vector<tensor::TensorView>& inputs) {
  int64_t rows = -1;
  for (const tensor::TensorView& input : inputs) {
    if (input.shape.rank() == 0) return -1;
    if (rows >= 0 && rows != input.shape.dim(0)) return -1;
    rows = input.shape.dim(0);
  }
  return rows;
}

std::string TheModelHas(const tensor::SignatureList& signatures) {
  return base::Cat(" The model has {", Join(NamesOf(signatures)), "}.");
}

bool HasOpenRows(const Endpoint& endpoint) {
  if (!endpoint.dense) return false;
  if (endpoint.shape.unknown_rank) return true;
  return !endpoint.shape.dims.empty() && endpoint.shape.dims[0] < 0;
}

}  // namespace

absl::StatusOr<BoundCall> Bind(const tensor::PredictRequest& request, const Signature& signature) {
  BoundCall call;
  RETURN_IF_ERROR(CheckCount(request, signature));
  RETURN_IF_ERROR(BindInputs(request, signature, &call));
  RETURN_IF_ERROR(BindOutputs(request, signature, &call));
  RETURN_IF_ERROR(CheckTypes(call, signature));
  call.rows = CommonRows(call.inputs);
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    call.fits_signature &= signature.inputs[i].shape.Admits(call.inputs[i].shape);
  }
  return call;
}

std::string DescribeMisfits(const BoundCall& call, const Signature& signature) {
  std::string text;
  for (size_t i = 0; i < call.inputs.size() && i < signature.inputs.size(); ++i) {
    const Endpoint& input = signature.inputs[i];
    if (input.shape.Admits(call.inputs[i].shape)) continue;
    if (!text.empty()) text += "; ";
    text +=
        base::Cat("input \"", input.name, "\" came with shape ", call.inputs[i].shape.ToString(),
                  ", the signature says ", input.shape.ToString());
  }
  return text;
}

bool IsBatchable(const Signature& signature) {
  return !signature.inputs.empty() &&
         std::all_of(signature.inputs.begin(), signature.inputs.end(), HasOpenRows) &&
         std::all_of(signature.outputs.begin(), signature.outputs.end(), HasOpenRows);
}

absl::StatusOr<int> FindSignature(const tensor::SignatureList& signatures, std::string_view name) {
  if (name.empty()) name = kDefaultSignature;
  const int index = tensor::SignatureIndex(signatures, name);
  if (index >= 0) return index;
  return absl::FailedPreconditionError(
      base::Cat("Serving signature key \"", name, "\" not found.", TheModelHas(signatures)));
}

absl::StatusOr<int> FindSignatureForJson(const tensor::SignatureList& signatures,
                                         std::string_view name) {
  if (name.empty()) name = kDefaultSignature;
  const int index = tensor::SignatureIndex(signatures, name);
  if (index >= 0) return index;
  return absl::InvalidArgumentError(base::Cat("Serving signature name: \"", name,
                                              "\" not found in signature def.",
                                              TheModelHas(signatures)));
}

absl::StatusOr<int> FindInferenceSignature(const tensor::SignatureList& signatures,
                                           std::string_view name) {
  if (name.empty()) name = kDefaultSignature;
  const int index = tensor::SignatureIndex(signatures, name);
  if (index >= 0) return index;
  return absl::InvalidArgumentError(
      base::Cat("No signature was found with the name: ", name, ".", TheModelHas(signatures)));
}

absl::StatusOr<int> FindTaskSignature(const tensor::SignatureList& signatures,
                                      std::string_view name) {
  if (name.empty()) name = kDefaultSignature;
  const int index = tensor::SignatureIndex(signatures, name);
  if (index >= 0) return index;
  return absl::InvalidArgumentError(base::Cat(
      "Requested signature not found in model graph: ", name, ".", TheModelHas(signatures)));
}

absl::Status CheckPredictMethod(const Signature& signature) {
  constexpr std::string_view kPrefix = "tensorflow/serving/";
  std::string_view method = signature.method_name;
  if (method.starts_with(kPrefix)) {
    method.remove_prefix(kPrefix.size());
    if (method == "predict" || method == "classify" || method == "regress") {
      return absl::OkStatus();
    }
  }
  return absl::InternalError(base::Cat(
      "Expected prediction signature method_name to be one of {tensorflow/serving/predict, "
      "tensorflow/serving/classify, tensorflow/serving/regress}. Was: ",
      signature.method_name));
}

}  // namespace tensord::wire
