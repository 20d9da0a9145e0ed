// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/oip/infer_json.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "wire/json/cursor.h"
#include "wire/json/element_writer.h"
#include "wire/json/list_reader.h"
#include "wire/oip/datatype.h"
#include "wire/oip/raw_tensor.h"

namespace tensord::wire {
namespace {

using tensor::DType;
using tensor::Shape;

absl::Status Invalid(std::string_view words) {
  return absl::InvalidArgumentError(base::Cat(words));
}

// Whether NaN, Inf or Infinity stand outside of strings: JSON has no such words, and the cursor
// takes them because another API allows them.
bool HasWordsForNonFinite(std::string_view text) {
  if (text.find('N') == std::string_view::npos && text.find('I') == std::string_view::npos) {
    return false;
  }
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string && (text[i] == 'N' || text[i] == 'I')) {
      return true;
    }
  }
  return false;
}

// A value's extent; large nests of numbers by their brackets alone (`skimmed`), to be read strictly
// afterwards.
struct Extent {
  JsonValue value;
  bool skimmed = false;
};

absl::StatusOr<Extent> TakeExtent(JsonCursor* cursor) {
  Extent extent;
  if (cursor->SkimLists(&extent.value)) {
    extent.skimmed = true;
    return extent;
  }
  ASSIGN_OR_RETURN(extent.value, cursor->ReadValue());
  return extent;
}

// Walks an object of unchecked text: visit(name) takes the value.
template <typename Visit>
absl::Status WalkObject(JsonCursor* cursor, std::string_view what, Visit visit) {
  if (!cursor->Take('{')) return Invalid(base::Cat(what, " must be a JSON object"));
  cursor->SkipSpace();
  if (cursor->Take('}')) return absl::OkStatus();
  for (bool more = true; more;) {
    ASSIGN_OR_RETURN(const std::string_view name, cursor->ReadName());
    RETURN_IF_ERROR(visit(name));
    ASSIGN_OR_RETURN(more, cursor->ReadMemberEnd());
  }
  return absl::OkStatus();
}

// Likewise a list: visit() takes the element.
template <typename Visit>
absl::Status WalkList(JsonCursor* cursor, std::string_view what, Visit visit) {
  if (!cursor->Take('[')) return Invalid(base::Cat(what, " must be a list"));
  cursor->SkipSpace();
  if (cursor->Take(']')) return absl::OkStatus();
  while (true) {
    RETURN_IF_ERROR(visit());
    cursor->SkipSpace();
    if (cursor->Take(']')) return absl::OkStatus();
    if (!cursor->Take(',')) {
      return Invalid(
          base::Cat("JSON Parse error: Missing a comma or ] after an element of ", what));
    }
    cursor->SkipSpace();
  }
}

absl::StatusOr<std::string> TakeString(JsonCursor* cursor, std::string_view what) {
  ASSIGN_OR_RETURN(const JsonValue value, cursor->ReadValue());
  if (value.kind != JsonKind::kString) return Invalid(base::Cat(what, " must be a string"));
  return UnescapeJson(value.text);
}

absl::StatusOr<uint64_t> TakeCount(JsonCursor* cursor, std::string_view what) {
  ASSIGN_OR_RETURN(const JsonValue value, cursor->ReadValue());
  uint64_t count = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto result = std::from_chars(value.text.data(), end, count);
  if (value.kind != JsonKind::kNumber || result.ec != std::errc() || result.ptr != end) {
    return Invalid(base::Cat(what, " must be a whole number, not ", JsonExcerpt(value.text)));
  }
  return count;
}

absl::StatusOr<bool> TakeBool(JsonCursor* cursor, std::string_view what) {
  ASSIGN_OR_RETURN(const JsonValue value, cursor->ReadValue());
  if (value.kind == JsonKind::kTrue) return true;
  if (value.kind == JsonKind::kFalse) return false;
  return Invalid(base::Cat(what, " must be true or false"));
}

// The parameters that mean something here, of the request, an input or an output.
struct Parameters {
  std::optional<std::string> signature_name;
  std::optional<uint64_t> binary_data_size;
  std::optional<bool> binary_data;
  std::optional<bool> binary_data_output;
};

absl::Status TakeParameter(std::string_view name, JsonCursor* cursor, Parameters* parameters) {
  if (IsJsonName(name, "signature_name")) {
    ASSIGN_OR_RETURN(parameters->signature_name, TakeString(cursor, "signature_name"));
  } else if (IsJsonName(name, "binary_data_size")) {
    ASSIGN_OR_RETURN(parameters->binary_data_size, TakeCount(cursor, "binary_data_size"));
  } else if (IsJsonName(name, "binary_data")) {
    ASSIGN_OR_RETURN(parameters->binary_data, TakeBool(cursor, "binary_data"));
  } else if (IsJsonName(name, "binary_data_output")) {
    ASSIGN_OR_RETURN(parameters->binary_data_output, TakeBool(cursor, "binary_data_output"));
  } else {
    RETURN_IF_ERROR(CheckOipTensorParameter(UnescapeJson(name)));
    return cursor->ReadValue().status();  // Others are for other servers.
  }
  return absl::OkStatus();
}

OipParameter ParameterOf(const JsonValue& value) {
  if (value.kind == JsonKind::kTrue || value.kind == JsonKind::kFalse) {
    return value.kind == JsonKind::kTrue;
  }
  if (value.kind == JsonKind::kString) return UnescapeJson(value.text);
  uint64_t number = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto result = std::from_chars(value.text.data(), end, number);
  if (value.kind != JsonKind::kNumber || result.ec != std::errc() || result.ptr != end) return {};
  return number;
}

absl::Status TakeParameters(JsonCursor* cursor, Parameters* parameters) {
  return WalkObject(cursor, "parameters",
                    [&](std::string_view name) { return TakeParameter(name, cursor, parameters); });
}

// One input as its object describes it.
struct Input {
  std::optional<std::string> name;
  std::optional<std::string> datatype;
  std::optional<std::vector<int64_t>> shape;
  std::optional<Extent> data;
  Parameters parameters;
};

absl::StatusOr<std::vector<int64_t>> TakeShape(JsonCursor* cursor) {
  std::vector<int64_t> shape;
  RETURN_IF_ERROR(WalkList(cursor, "shape", [&]() -> absl::Status {
    if (shape.size() == limits::kRankMax) {
      return Invalid(base::Cat("the rank is above the limit of ", limits::kRankMax));
    }
    ASSIGN_OR_RETURN(const uint64_t dim, TakeCount(cursor, "a dimension of shape"));
    if (dim > limits::kElementsMax) {
      return Invalid(
          base::Cat("the dimension ", dim, " is above the limit of ", limits::kElementsMax));
    }
    shape.push_back(static_cast<int64_t>(dim));
    return absl::OkStatus();
  }));
  return shape;
}

absl::Status Twice(std::string_view name) {
  return Invalid(base::Cat("the member ", UnescapeJson(name), " is given twice"));
}

absl::Status TakeInputMember(std::string_view name, JsonCursor* cursor, Input* input) {
  if (IsJsonName(name, "name")) {
    if (input->name) return Twice(name);
    ASSIGN_OR_RETURN(input->name, TakeString(cursor, "name"));
  } else if (IsJsonName(name, "datatype")) {
    if (input->datatype) return Twice(name);
    ASSIGN_OR_RETURN(input->datatype, TakeString(cursor, "datatype"));
  } else if (IsJsonName(name, "shape")) {
    if (input->shape) return Twice(name);
    ASSIGN_OR_RETURN(input->shape, TakeShape(cursor));
  } else if (IsJsonName(name, "data")) {
    if (input->data) return Twice(name);
    ASSIGN_OR_RETURN(input->data, TakeExtent(cursor));
  } else if (IsJsonName(name, "parameters")) {
    return TakeParameters(cursor, &input->parameters);
  } else {
    return cursor->ReadValue().status();
  }
  return absl::OkStatus();
}

// Reads the list as a tensor of that many elements at most; `nest` as ListReader takes it.
absl::StatusOr<tensor::Tensor> ReadList(const JsonValue& data, DType dtype, const Shape& wanted,
                                        ListReader::Take take, uint64_t bytes_max) {
  const uint64_t room =
      std::min<uint64_t>(static_cast<uint64_t>(wanted.elements()), data.commas + 1);
  JsonCursor cursor(data.text);
  ASSIGN_OR_RETURN(ElementWriter writer, ElementWriter::Make(dtype, room, bytes_max));
  ListReader reader(&cursor, &writer, take);
  const absl::StatusOr<Shape> shape = reader.Read();
  if (!shape.ok()) {
    return base::WithContext(shape.status(), base::Cat("data", reader.path(), ": "));
  }
  if (reader.elements() != static_cast<uint64_t>(wanted.elements())) {
    return Invalid(base::Cat("data holds ", reader.elements(), " values where shape ",
                             wanted.ToString(), " needs ", wanted.elements()));
  }
  if (shape->rank() != 1 && *shape != wanted) {
    return Invalid(base::Cat("data is nested as ", shape->ToString(), " where shape says ",
                             wanted.ToString(), "; nest it like that, or not at all"));
  }
  return std::move(writer).Finish(wanted, bytes_max);
}

absl::StatusOr<tensor::Tensor> ReadData(const Extent& data, DType dtype, const Shape& wanted,
                                        uint64_t bytes_max) {
  if (data.value.kind != JsonKind::kArray) return Invalid("data must be a list");
  if (data.value.depth > limits::kJsonDepthMax) {
    return Invalid(base::Cat("data is nested ", data.value.depth, " levels deep; the limit is ",
                             limits::kJsonDepthMax));
  }
  if (!data.skimmed) {
    return ReadList(data.value, dtype, wanted, ListReader::Take::kAll, bytes_max);
  }
  absl::StatusOr<tensor::Tensor> quick =
      ReadList(data.value, dtype, wanted, ListReader::Take::kNestsStrictly, bytes_max);
  if (quick.ok()) return quick;
  // The careful way, which knows more forms and better words; the text has not been checked yet.
  JsonCursor cursor(data.value.text);
  ASSIGN_OR_RETURN(const JsonValue checked, cursor.ReadValue());
  if (cursor.at() != cursor.end()) return Invalid("JSON Parse error: data ends too early");
  return ReadList(checked, dtype, wanted, ListReader::Take::kAll, bytes_max);
}

class Parser {
 public:
  Parser(std::string_view json, std::string_view binary) : json_(json), binary_(binary) {}

  absl::StatusOr<OipRequest> Parse() {
    if (HasWordsForNonFinite(json_)) {
      return Invalid(
          "JSON Parse error: NaN and Infinity are no JSON numbers; send such values as binary "
          "data");
    }
    JsonCursor cursor(json_);
    cursor.SkipSpace();
    RETURN_IF_ERROR(WalkObject(&cursor, "the request",
                               [&](std::string_view name) { return TakeMember(name, &cursor); }));
    cursor.SkipSpace();
    if (cursor.at() != cursor.end()) {
      return Invalid("JSON Parse error: there is more behind the request's object");
    }
    if (!has_inputs_) return Invalid("the request has no member \"inputs\"");
    if (!binary_.empty()) {
      return Invalid(base::Cat(binary_.size(),
                               " bytes of binary data are left over: the inputs' binary_data_size "
                               "must add up to what follows the JSON text"));
    }
    return Finish();
  }

 private:
  absl::Status TakeMember(std::string_view name, JsonCursor* cursor) {
    if (IsJsonName(name, "id")) {
      ASSIGN_OR_RETURN(oip_.id, TakeString(cursor, "id"));
    } else if (IsJsonName(name, "parameters")) {
      return WalkObject(cursor, "parameters", [this, cursor](std::string_view parameter) {
        return TakeRequestParameter(parameter, cursor);
      });
    } else if (IsJsonName(name, "inputs")) {
      if (std::exchange(has_inputs_, true)) return Twice(name);
      return WalkList(cursor, "inputs", [this, cursor] { return TakeInput(cursor); });
    } else if (IsJsonName(name, "outputs")) {
      if (std::exchange(has_outputs_, true)) return Twice(name);
      return WalkList(cursor, "outputs", [this, cursor] { return TakeOutput(cursor); });
    } else {
      return cursor->ReadValue().status();
    }
    return absl::OkStatus();
  }

  absl::Status TakeRequestParameter(std::string_view quoted, JsonCursor* cursor) {
    const std::string name = UnescapeJson(quoted);
    if (!IsOipParameter(name)) return TakeParameter(quoted, cursor, &parameters_);
    ASSIGN_OR_RETURN(const JsonValue value, cursor->ReadValue());
    return TakeOipParameter(name, ParameterOf(value), &oip_.urgency);
  }

  absl::Status TakeInput(JsonCursor* cursor) {
    auto& inputs = oip_.request.inputs;
    if (inputs.size() == limits::kInputsMax) {
      return Invalid(base::Cat("the request has more than ", limits::kInputsMax, " inputs"));
    }
    Input input;
    RETURN_IF_ERROR(WalkObject(cursor, "each of inputs", [&](std::string_view name) {
      return TakeInputMember(name, cursor, &input);
    }));
    if (!input.name) return Invalid(base::Cat("inputs[", inputs.size(), "] has no name"));
    absl::StatusOr<DecodedTensor> tensor = Decode(input);
    if (!tensor.ok()) {
      return base::WithContext(tensor.status(), base::Cat("input \"", *input.name, "\": "));
    }
    inputs.push_back({Keep(*std::move(input.name)), tensor->view});
    if (tensor->owned.dtype != DType::kInvalid) {
      oip_.request.decoded.push_back(std::move(tensor->owned));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<DecodedTensor> Decode(const Input& input) {
    if (!input.datatype || !input.shape) return Invalid("needs name, datatype, shape and data");
    const DType dtype = OipDType(*input.datatype);
    if (dtype == DType::kInvalid) {
      return Invalid(base::Cat("datatype ", JsonExcerpt(*input.datatype), " is not known"));
    }
    ASSIGN_OR_RETURN(const Shape shape, Shape::Make(*input.shape));
    if (input.parameters.binary_data_size) return TakeBinary(input, dtype, shape);
    if (!input.data) return Invalid("has neither data nor the parameter binary_data_size");
    DecodedTensor result;
    ASSIGN_OR_RETURN(result.owned, ReadData(*input.data, dtype, shape, budget_.bytes));
    budget_.bytes -= result.owned.buffer.size();
    result.view = result.owned.view();
    return result;
  }

  absl::StatusOr<DecodedTensor> TakeBinary(const Input& input, DType dtype, const Shape& shape) {
    if (input.data) return Invalid("has both data and the parameter binary_data_size");
    const uint64_t size = *input.parameters.binary_data_size;
    if (size > binary_.size()) {
      return Invalid(base::Cat("binary_data_size is ", size, " where ", binary_.size(),
                               " bytes are left behind the JSON text (the header "
                               "Inference-Header-Content-Length tells where that ends)"));
    }
    const std::string_view bytes = binary_.substr(0, size);
    binary_.remove_prefix(size);
    return ReadRawTensor(dtype, shape, bytes, &budget_);
  }

  absl::Status TakeOutput(JsonCursor* cursor) {
    if (wanted_.size() == limits::kInputsMax) {
      return Invalid(base::Cat("the request names more than ", limits::kInputsMax, " outputs"));
    }
    std::optional<std::string> named;
    Parameters parameters;
    RETURN_IF_ERROR(
        WalkObject(cursor, "each of outputs", [&](std::string_view name) -> absl::Status {
          if (IsJsonName(name, "parameters")) return TakeParameters(cursor, &parameters);
          if (!IsJsonName(name, "name")) return cursor->ReadValue().status();
          if (named) return Twice(name);
          ASSIGN_OR_RETURN(named, TakeString(cursor, "name"));
          return absl::OkStatus();
        }));
    if (!named) return Invalid(base::Cat("outputs[", wanted_.size(), "] has no name"));
    wanted_.push_back(parameters.binary_data);
    oip_.request.output_filter.push_back(Keep(*std::move(named)));
    return absl::OkStatus();
  }

  std::string_view Keep(std::string name) {
    oip_.names.push_back(std::move(name));
    return oip_.names.back();
  }

  OipRequest Finish() {
    oip_.request.spec.signature_name = std::move(parameters_.signature_name).value_or("");
    oip_.binary_default = parameters_.binary_data_output.value_or(false);
    for (const std::optional<bool>& binary : wanted_) {
      oip_.binary.push_back(binary.value_or(oip_.binary_default));
    }
    return std::move(oip_);
  }

  const std::string_view json_;
  std::string_view binary_;  // What no input has taken yet.
  OipRequest oip_;
  DecodeBudget budget_;
  Parameters parameters_;
  std::vector<std::optional<bool>> wanted_;
  bool has_inputs_ = false;
  bool has_outputs_ = false;
};

}  // namespace

absl::StatusOr<size_t> OipJsonBytes(std::optional<std::string_view> header, size_t body_bytes) {
  if (!header) return body_bytes;
  size_t bytes = 0;
  const char* const end = header->data() + header->size();
  const auto result = std::from_chars(header->data(), end, bytes);
  if (result.ec != std::errc() || result.ptr != end || bytes > body_bytes) {
    constexpr size_t kShown = 64;
    return Invalid(base::Cat("the header Inference-Header-Content-Length says \"",
                             header->substr(0, kShown), "\", and the body has ", body_bytes,
                             " bytes"));
  }
  return bytes;
}

absl::StatusOr<OipRequest> ParseOipInfer(std::string_view body, size_t json_bytes) {
  return Parser(body.substr(0, json_bytes), body.substr(json_bytes)).Parse();
}

}  // namespace tensord::wire
