// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/oip/infer_walk.h"

#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "base/limits.h"
#include "base/protobuf_wire.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "wire/oip/datatype.h"
#include "wire/oip/raw_tensor.h"
#include "wire/oip/typed_contents.h"

namespace tensord::wire {
namespace {

using base::WireReader;
using base::WireType;
using tensor::DType;
using tensor::Shape;

// proto/tensord/open_inference.proto.
enum RequestField : uint32_t {
  kModelName = 1,
  kModelVersion = 2,
  kId = 3,
  kParameters = 4,
  kInputs = 5,
  kOutputs = 6,
  kRawInputs = 7,
};

absl::Status MalformedInference(std::string_view message) {
  return absl::InvalidArgumentError(base::Cat("the bytes are not an inference.", message));
}

// An InferInputTensor, its values not yet looked into.
struct WalkedInput {
  std::string_view name;
  std::string_view datatype;
  std::vector<int64_t> shape;
  std::vector<std::string_view> contents;  // Pieces of one message.
};

absl::Status AddDim(uint64_t value, WalkedInput* input) {
  if (input->shape.size() == limits::kRankMax) {
    return absl::InvalidArgumentError(
        base::Cat("input \"", input->name, "\" has a rank above the limit of ", limits::kRankMax));
  }
  input->shape.push_back(static_cast<int64_t>(value));
  return absl::OkStatus();
}

absl::Status AddDims(std::string_view packed, WalkedInput* input) {
  while (!packed.empty()) {
    uint64_t value = 0;
    if (!base::ReadVarint(&packed, &value))
      return MalformedInference("ModelInferRequest.InferInputTensor");
    RETURN_IF_ERROR(AddDim(value, input));
  }
  return absl::OkStatus();
}

// One entry of a map of InferParameter, its value an InferParameter yet to be read.
struct ParameterEntry {
  std::string_view key;
  std::string_view value;
};

absl::StatusOr<ParameterEntry> WalkEntry(std::string_view bytes) {
  ParameterEntry entry;
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.type() != WireType::kBytes) continue;
    if (reader.field() == 1) entry.key = reader.bytes();
    if (reader.field() == 2) entry.value = reader.bytes();
  }
  if (!reader.ok()) return MalformedInference("ModelInferRequest.ParametersEntry");
  return entry;
}

// The last of its fields counts, as of any oneof.
absl::StatusOr<OipParameter> ReadParameter(std::string_view bytes) {
  OipParameter value;
  WireReader reader(bytes);
  while (reader.Next()) {
    const uint32_t field = reader.field();
    if (reader.type() == WireType::kBytes && field == 3) {
      value = std::string(reader.bytes());
    } else if (reader.type() == WireType::kVarint && field == 1) {
      value = reader.number() != 0;
    } else if (reader.type() == WireType::kVarint && field == 5) {
      value = reader.number();
    } else if (reader.type() == WireType::kVarint && field == 2) {
      // Negative numbers have the highest bit.
      const bool negative = reader.number() >> 63 != 0;
      value = negative ? OipParameter() : OipParameter(reader.number());
    } else {
      value = std::monostate();
    }
  }
  if (!reader.ok()) return MalformedInference("InferParameter");
  return value;
}

absl::Status WalkSignatureName(std::string_view bytes, tensor::ModelSpec* spec) {
  ASSIGN_OR_RETURN(const ParameterEntry entry, WalkEntry(bytes));
  if (entry.key != "signature_name") return absl::OkStatus();
  ASSIGN_OR_RETURN(OipParameter value, ReadParameter(entry.value));
  std::string* const name = std::get_if<std::string>(&value);
  if (name == nullptr) {
    return absl::InvalidArgumentError("the parameter signature_name must be a string_param");
  }
  spec->signature_name = std::move(*name);
  return absl::OkStatus();
}

absl::Status WalkParameter(std::string_view bytes, OipUrgency* urgency) {
  ASSIGN_OR_RETURN(const ParameterEntry entry, WalkEntry(bytes));
  if (!IsOipParameter(entry.key)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const OipParameter value, ReadParameter(entry.value));
  return TakeOipParameter(entry.key, value, urgency);
}

// Of an input or an output.
absl::Status CheckTensorParameter(std::string_view bytes) {
  ASSIGN_OR_RETURN(const ParameterEntry entry, WalkEntry(bytes));
  return CheckOipTensorParameter(entry.key);
}

absl::StatusOr<WalkedInput> WalkInput(std::string_view bytes) {
  WalkedInput input;
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == 3 && reader.type() == WireType::kVarint) {
      RETURN_IF_ERROR(AddDim(reader.number(), &input));
    }
    if (reader.type() != WireType::kBytes) continue;
    switch (reader.field()) {
      case 1:
        input.name = reader.bytes();
        break;
      case 2:
        input.datatype = reader.bytes();
        break;
      case 3:
        RETURN_IF_ERROR(AddDims(reader.bytes(), &input));
        break;
      case 4:
        RETURN_IF_ERROR(CheckTensorParameter(reader.bytes()));
        break;
      case 5:
        if (input.contents.size() == limits::kInputsMax) {
          return absl::InvalidArgumentError(base::Cat(
              "input \"", input.name, "\" comes in more than ", limits::kInputsMax, " pieces"));
        }
        input.contents.push_back(reader.bytes());
        break;
      default:
        break;
    }
  }
  if (!reader.ok()) return MalformedInference("ModelInferRequest.InferInputTensor");
  return input;
}

absl::StatusOr<std::string_view> WalkOutput(std::string_view bytes) {
  std::string_view name;
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.type() != WireType::kBytes) continue;
    if (reader.field() == 1) name = reader.bytes();
    if (reader.field() == 2) RETURN_IF_ERROR(CheckTensorParameter(reader.bytes()));
  }
  if (!reader.ok()) return MalformedInference("ModelInferRequest.InferRequestedOutputTensor");
  return name;
}

struct Walked {
  std::vector<WalkedInput> inputs;
  std::vector<std::string_view> raw;
  bool has_contents = false;
};

absl::Status TooMany(std::string_view what) {
  return absl::InvalidArgumentError(
      base::Cat("the request has more than ", limits::kInputsMax, " ", what));
}

absl::Status TakeField(const WireReader& reader, Walked* walked, OipRequest* oip) {
  switch (reader.field()) {
    case kId:
      oip->id = reader.bytes();
      return absl::OkStatus();
    case kParameters:
      return WalkParameter(reader.bytes(), &oip->urgency);
    case kInputs: {
      if (walked->inputs.size() == limits::kInputsMax) return TooMany("inputs");
      ASSIGN_OR_RETURN(WalkedInput input, WalkInput(reader.bytes()));
      walked->has_contents |= !input.contents.empty();
      walked->inputs.push_back(std::move(input));
      return absl::OkStatus();
    }
    case kOutputs: {
      std::vector<std::string_view>& wanted = oip->request.output_filter;
      if (wanted.size() == limits::kInputsMax) return TooMany("outputs");
      ASSIGN_OR_RETURN(const std::string_view name, WalkOutput(reader.bytes()));
      wanted.push_back(name);
      return absl::OkStatus();
    }
    case kRawInputs:
      if (walked->raw.size() == limits::kInputsMax) return TooMany("raw_input_contents");
      walked->raw.push_back(reader.bytes());
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

absl::Status CheckForm(const Walked& walked) {
  if (walked.raw.empty()) return absl::OkStatus();
  if (walked.has_contents) {
    return absl::InvalidArgumentError(
        "the inputs have contents beside raw_input_contents; send all of them in one form");
  }
  if (walked.raw.size() == walked.inputs.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(base::Cat("there are ", walked.raw.size(),
                                              " raw_input_contents for ", walked.inputs.size(),
                                              " inputs; send one for each, in their order"));
}

absl::StatusOr<DecodedTensor> DecodeInput(const Walked& walked, size_t index,
                                          DecodeBudget* budget) {
  const WalkedInput& input = walked.inputs[index];
  const DType dtype = OipDType(input.datatype);
  if (dtype == DType::kInvalid) {
    constexpr size_t kShown = 64;
    return absl::InvalidArgumentError(
        base::Cat("datatype \"", input.datatype.substr(0, kShown), "\" is not known"));
  }
  ASSIGN_OR_RETURN(const Shape shape, Shape::Make(input.shape));
  if (!walked.raw.empty()) return ReadRawTensor(dtype, shape, walked.raw[index], budget);
  return ReadTypedContents(dtype, shape, input.contents, budget);
}

}  // namespace

absl::StatusOr<tensor::ModelSpec> WalkOipSpec(std::string_view body) {
  tensor::ModelSpec spec;
  std::string_view version;
  WireReader reader(body);
  while (reader.Next()) {
    if (reader.type() != WireType::kBytes) continue;
    if (reader.field() == kModelName) spec.name = reader.bytes();
    if (reader.field() == kModelVersion) version = reader.bytes();
    if (reader.field() == kParameters) RETURN_IF_ERROR(WalkSignatureName(reader.bytes(), &spec));
  }
  if (!reader.ok()) return MalformedInference("ModelInferRequest");
  if (spec.name.empty()) return absl::InvalidArgumentError("the request names no model");
  ASSIGN_OR_RETURN(spec.version, ParseOipVersion(version));
  return spec;
}

absl::StatusOr<OipRequest> WalkOipInfer(std::string_view body) {
  OipRequest oip;
  ASSIGN_OR_RETURN(oip.request.spec, WalkOipSpec(body));
  Walked walked;
  WireReader reader(body);
  while (reader.Next()) {
    if (reader.type() == WireType::kBytes) RETURN_IF_ERROR(TakeField(reader, &walked, &oip));
  }
  RETURN_IF_ERROR(CheckForm(walked));
  oip.raw = !walked.has_contents;
  DecodeBudget budget;
  oip.request.inputs.reserve(walked.inputs.size());
  for (size_t i = 0; i < walked.inputs.size(); ++i) {
    const std::string_view name = walked.inputs[i].name;
    absl::StatusOr<DecodedTensor> tensor = DecodeInput(walked, i, &budget);
    if (!tensor.ok()) {
      return base::WithContext(tensor.status(), base::Cat("input \"", name, "\": "));
    }
    oip.request.inputs.push_back({name, tensor->view});
    if (tensor->owned.dtype != DType::kInvalid) {
      oip.request.decoded.push_back(std::move(tensor->owned));
    }
  }
  return oip;
}

}  // namespace tensord::wire
