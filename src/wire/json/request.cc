// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/json/request.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "wire/json/element_writer.h"
#include "wire/json/list_reader.h"

namespace tensord::wire {
namespace {

using tensor::Endpoint;
using tensor::Shape;
using tensor::Signature;

// As absl::Status prints itself; the original nests errors this way.
std::string CodeAndText(const absl::Status& status) {
  return base::Cat(
      status.code() == absl::StatusCode::kUnimplemented ? "UNIMPLEMENTED: " : "INVALID_ARGUMENT: ",
      base::Message(status));
}

// Takes the first value that goes by one of our names.
absl::Status TakeMember(std::string_view name, const JsonValue& value, bool* has_signature,
                        JsonRequest* request) {
  if (!*has_signature && IsJsonName(name, "signature_name")) {
    *has_signature = true;
    if (value.kind != JsonKind::kString) {
      return JsonFormatError(
          value.text, "not formatted correctly. 'signature_name' key must be a string value.");
    }
    request->signature_name = UnescapeJson(value.text);
  } else if (!request->instances.has_value() && IsJsonName(name, "instances")) {
    request->instances = value;
  } else if (!request->inputs.has_value() && IsJsonName(name, "inputs")) {
    request->inputs = value;
  } else if (!request->context.has_value() && IsJsonName(name, "context")) {
    request->context = value;
  } else if (!request->examples.has_value() && IsJsonName(name, "examples")) {
    request->examples = value;
  }
  return absl::OkStatus();
}

// The extent of a value that was checked, or whose lists are read strictly afterwards.
absl::StatusOr<JsonValue> Extent(JsonCursor* cursor) {
  JsonValue value;
  if (cursor->SkimLists(&value)) return value;
  return cursor->ReadValue();
}

std::string_view Rest(const JsonCursor& cursor) {
  return {cursor.at(), static_cast<size_t>(cursor.end() - cursor.at())};
}

// What is being read of one input.
struct Column {
  const Endpoint* input = nullptr;
  std::optional<ElementWriter> writer;  // Set with the first row.
  Shape row_shape;                      // Of the first row; all others are like it.
  uint64_t row_elements = 0;
  int64_t rows = 0;
};

uint64_t Leaves(const JsonValue& value) { return value.commas + 1; }

// How lists are read, and how many were read strictly.
struct Reading {
  ListReader::Take take = ListReader::Take::kAll;
  uint64_t nests = 0;
};

class RowReader {
 public:
  RowReader(const JsonValue& instances, const Signature& signature, Reading* reading)
      : instances_(instances),
        signature_(signature),
        reading_(*reading),
        columns_(signature.inputs.size()) {
    for (size_t i = 0; i < columns_.size(); ++i) columns_[i].input = &signature.inputs[i];
  }

  absl::StatusOr<tensor::PredictRequest> Read();

 private:
  absl::Status ReadRows();
  absl::Status ReadPlainRow(JsonCursor* cursor);
  absl::Status ReadObjectRow(JsonCursor* cursor);
  absl::Status ReadMember(std::string_view name, JsonCursor* cursor);
  absl::Status ReadValue(JsonCursor* cursor, Column* column);
  absl::Status MakeWriter(const JsonCursor& cursor, Column* column);
  absl::Status CheckRow(const Column& column, const Shape& shape, uint64_t elements) const;
  absl::Status Misplaced(std::string_view expected, std::string_view came) const;
  Column* FindColumn(std::string_view name);
  std::string InputNames() const;

  const JsonValue& instances_;
  const Signature& signature_;
  Reading& reading_;
  std::vector<Column> columns_;
  size_t next_column_ = 0;  // Members mostly come in one order: look there first.
  int64_t row_ = 0;
  uint64_t bytes_left_ = limits::kDecodedBytesMax;
};

std::string RowReader::InputNames() const {
  std::string names;
  for (const Endpoint& input : signature_.inputs) {
    if (!names.empty()) names += ',';
    names += input.name;
  }
  return names;
}

absl::Status RowReader::Misplaced(std::string_view expected, std::string_view came) const {
  return absl::InvalidArgumentError(
      base::Cat("Expecting ", expected, " but got ", came, " at item ", row_, " of input list"));
}

Column* RowReader::FindColumn(std::string_view name) {
  for (size_t i = 0; i < columns_.size(); ++i) {
    const size_t at = (next_column_ + i) % columns_.size();
    if (!IsJsonName(name, columns_[at].input->name)) continue;
    next_column_ = (at + 1) % columns_.size();
    return &columns_[at];
  }
  return nullptr;
}

// Sizes the input's tensor by its first row, but never beyond what the text can hold.
absl::Status RowReader::MakeWriter(const JsonCursor& cursor, Column* column) {
  uint64_t elements = Leaves(instances_);
  if (columns_.size() > 1) {
    JsonCursor ahead = cursor;
    ASSIGN_OR_RETURN(const JsonValue value, Extent(&ahead));
    elements = std::min(elements, Leaves(value) * instances_.children);
  }
  ASSIGN_OR_RETURN(column->writer,
                   ElementWriter::Make(column->input->dtype, elements, bytes_left_));
  return absl::OkStatus();
}

absl::Status RowReader::CheckRow(const Column& column, const Shape& shape,
                                 uint64_t elements) const {
  if (elements != column.row_elements) {
    return absl::InvalidArgumentError(
        base::Cat("Expecting tensor size: ", column.row_elements, " but got: ", elements));
  }
  if (shape != column.row_shape) {
    return absl::InvalidArgumentError(
        base::Cat("Expecting shape ", column.row_shape.ToString(), " but got: ", shape.ToString()));
  }
  return absl::OkStatus();
}

absl::Status RowReader::ReadValue(JsonCursor* cursor, Column* column) {
  if (!column->writer.has_value()) RETURN_IF_ERROR(MakeWriter(*cursor, column));
  ListReader reader(cursor, &*column->writer, reading_.take);
  const absl::StatusOr<Shape> shape = reader.Read();
  if (reader.was_nest()) ++reading_.nests;
  if (!shape.ok()) {
    return absl::Status(shape.status().code(),
                        base::Cat(base::Message(shape.status()), " (at ", "instances[", row_, "]",
                                  reader.path(), ", input \"", column->input->name, "\")"));
  }
  if (column->rows == 0) {
    column->row_shape = *shape;
    column->row_elements = reader.elements();
  }
  ++column->rows;
  return CheckRow(*column, *shape, reader.elements());
}

absl::Status RowReader::ReadPlainRow(JsonCursor* cursor) {
  if (cursor->Peek() == '{' && Base64Member(Rest(*cursor)).empty()) {
    return Misplaced("value/list", "object");
  }
  absl::Status status = ReadValue(cursor, &columns_.front());
  if (status.ok()) return status;
  return absl::InvalidArgumentError(base::Cat(
      "Failed to process element: ", row_, " of 'instances' list. Error: ", CodeAndText(status)));
}

absl::Status RowReader::ReadMember(std::string_view name, JsonCursor* cursor) {
  Column* const column = FindColumn(name);
  absl::Status status;
  if (column == nullptr) {
    status = absl::InvalidArgumentError(
        base::Cat("JSON object: does not have named input: ", UnescapeJson(name)));
  } else if (column->rows > row_) {
    status = absl::InvalidArgumentError("the object names this input twice");
  } else {
    status = ReadValue(cursor, column);
  }
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      base::Cat("Failed to process element: ", row_, " key: ", UnescapeJson(name),
                " of 'instances' list. Error: ", CodeAndText(status)));
}

absl::Status RowReader::ReadObjectRow(JsonCursor* cursor) {
  if (cursor->Peek() != '{' || !Base64Member(Rest(*cursor)).empty()) {
    return Misplaced("object", "list");
  }
  const char* const start = cursor->at();
  RETURN_IF_ERROR(ForEachJsonMember(
      cursor, [this, cursor](std::string_view name) { return ReadMember(name, cursor); }));
  const std::string_view object(start, static_cast<size_t>(cursor->at() - start));
  for (const Column& column : columns_) {
    if (column.rows == row_ + 1) continue;
    return absl::InvalidArgumentError(
        base::Cat("Failed to process element: ", row_, " of 'instances' list. JSON object: ",
                  JsonExcerpt(object), " keys must be equal to: ", InputNames()));
  }
  return absl::OkStatus();
}

absl::Status RowReader::ReadRows() {
  JsonCursor cursor(instances_.text);
  cursor.Take('[');
  cursor.SkipSpace();
  bool objects = false;
  if (cursor.Peek() == '{') {
    objects = Base64Member(Rest(cursor)).empty();
  } else if (columns_.size() > 1) {
    return absl::InvalidArgumentError(
        "instances is a plain list, but expecting list of objects as multiple input tensors "
        "required as per tensorinfo_map");
  }
  while (!cursor.Take(']')) {
    RETURN_IF_ERROR(objects ? ReadObjectRow(&cursor) : ReadPlainRow(&cursor));
    ++row_;
    cursor.SkipSpace();
    if (cursor.Take(',')) cursor.SkipSpace();
  }
  return absl::OkStatus();
}

// [3] and 2 rows: [2,3].
absl::StatusOr<Shape> WithLeadingDim(const Shape& shape, int64_t rows) {
  std::vector<int64_t> dims = {rows};
  dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
  return Shape::Make(dims);
}

absl::Status AddTensor(const Endpoint& input, ElementWriter writer, const Shape& shape,
                       uint64_t* bytes_left, tensor::PredictRequest* request) {
  ASSIGN_OR_RETURN(tensor::Tensor tensor, std::move(writer).Finish(shape, *bytes_left));
  *bytes_left -= tensor.buffer.size();
  request->decoded.push_back(std::move(tensor));
  request->inputs.push_back({input.name, request->decoded.back().view()});
  return absl::OkStatus();
}

absl::StatusOr<tensor::PredictRequest> RowReader::Read() {
  RETURN_IF_ERROR(ReadRows());
  tensor::PredictRequest request;
  for (Column& column : columns_) {
    if (!column.writer.has_value()) continue;
    ASSIGN_OR_RETURN(const Shape shape, WithLeadingDim(column.row_shape, column.rows));
    RETURN_IF_ERROR(
        AddTensor(*column.input, *std::move(column.writer), shape, &bytes_left_, &request));
  }
  return request;
}

absl::Status ReadColumn(const JsonValue& value, const Endpoint& input, Reading* reading,
                        uint64_t* bytes_left, tensor::PredictRequest* request) {
  JsonCursor cursor(value.text);
  ASSIGN_OR_RETURN(ElementWriter writer,
                   ElementWriter::Make(input.dtype, Leaves(value), *bytes_left));
  ListReader reader(&cursor, &writer, reading->take);
  const absl::StatusOr<Shape> shape = reader.Read();
  if (reader.was_nest()) ++reading->nests;
  if (!shape.ok()) {
    return absl::Status(shape.status().code(),
                        base::Cat(base::Message(shape.status()), " (at ", "inputs", reader.path(),
                                  ", input \"", input.name, "\")"));
  }
  return AddTensor(input, std::move(writer), *shape, bytes_left, request);
}

absl::StatusOr<tensor::PredictRequest> ReadColumns(const JsonValue& inputs,
                                                   const Signature& signature, Reading* reading) {
  tensor::PredictRequest request;
  uint64_t bytes_left = limits::kDecodedBytesMax;
  if (inputs.kind != JsonKind::kObject || !Base64Member(inputs.text).empty()) {
    if (signature.inputs.size() > 1) {
      return absl::InvalidArgumentError(
          "inputs is a plain value/list, but expecting an object as multiple input tensors "
          "required as per tensorinfo_map");
    }
    RETURN_IF_ERROR(ReadColumn(inputs, signature.inputs.front(), reading, &bytes_left, &request));
    return request;
  }
  std::vector<std::optional<JsonValue>> values(signature.inputs.size());
  JsonCursor cursor(inputs.text);
  RETURN_IF_ERROR(ForEachJsonMember(&cursor, [&](std::string_view name) -> absl::Status {
    ASSIGN_OR_RETURN(const JsonValue value, Extent(&cursor));
    const std::string plain = UnescapeJson(name);
    const int index = signature.InputIndex(plain);
    if (index >= 0 && !values[static_cast<size_t>(index)].has_value()) {
      values[static_cast<size_t>(index)] = value;
    }
    return absl::OkStatus();
  }));
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].has_value()) {
      return absl::InvalidArgumentError(
          base::Cat("Missing named input: ", signature.inputs[i].name, " in 'inputs' object."));
    }
    RETURN_IF_ERROR(ReadColumn(*values[i], signature.inputs[i], reading, &bytes_left, &request));
  }
  return request;
}

absl::Status CheckTensorKeys(const JsonRequest& request) {
  if (request.instances.has_value()) {
    if (request.inputs.has_value()) {
      return JsonFormatError(
          request.text,
          "Not formatted correctly expecting only one of 'inputs' or 'instances' "
          "keys to exist ");
    }
    if (request.instances->kind != JsonKind::kArray) {
      return JsonFormatError(request.text, "Expecting 'instances' to be an list/array");
    }
    if (request.instances->children == 0) {
      return JsonFormatError(request.text, "No values in 'instances' array");
    }
  } else if (!request.inputs.has_value()) {
    return absl::InvalidArgumentError("Missing 'inputs' or 'instances' key");
  }
  const JsonValue& value = request.instances.has_value() ? *request.instances : *request.inputs;
  if (value.depth > limits::kJsonDepthMax) {
    return absl::InvalidArgumentError(base::Cat("the tensors are nested ", value.depth,
                                                " levels deep; the limit is ",
                                                limits::kJsonDepthMax));
  }
  return absl::OkStatus();
}

absl::StatusOr<tensor::PredictRequest> ReadTensors(const JsonRequest& request,
                                                   const Signature& signature, Reading* reading) {
  return request.row_format ? RowReader(*request.instances, signature, reading).Read()
                            : ReadColumns(*request.inputs, signature, reading);
}

bool HoldsObjects(const JsonValue& list) {
  JsonCursor cursor(list.text);
  cursor.Take('[');
  cursor.SkipSpace();
  return cursor.Peek() == '{';
}

// The rows of an only input as one nest: the usual form of a large body.
absl::StatusOr<tensor::PredictRequest> ReadPlainRows(const JsonValue& instances,
                                                     const Endpoint& input, Reading* reading) {
  tensor::PredictRequest request;
  uint64_t bytes_left = limits::kDecodedBytesMax;
  RETURN_IF_ERROR(ReadColumn(instances, input, reading, &bytes_left, &request));
  return request;
}

// The tensors of a body whose lists are all regular nests of numbers; none when it has to be read
// the careful way.
std::optional<tensor::PredictRequest> ReadNests(const JsonRequest& request,
                                                const Signature& signature) {
  if (signature.inputs.empty() || !CheckTensorKeys(request).ok()) return std::nullopt;
  Reading reading{.take = ListReader::Take::kNestsStrictly};
  const bool plain_rows = request.row_format && signature.inputs.size() == 1 &&
                          request.unchecked_lists == 1 && !HoldsObjects(*request.instances);
  auto tensors = plain_rows ? ReadPlainRows(*request.instances, signature.inputs.front(), &reading)
                            : ReadTensors(request, signature, &reading);
  if (!tensors.ok() || reading.nests != request.unchecked_lists) return std::nullopt;
  return *std::move(tensors);
}

// How much of the body's syntax is checked.
enum class Care : uint8_t { kAll, kBracketsOfLists };

// Only the first counts, and only that one is read again.
bool IsFirstOfTensors(std::string_view name, const JsonRequest& request) {
  return !request.instances.has_value() && !request.inputs.has_value() &&
         (IsJsonName(name, "instances") || IsJsonName(name, "inputs"));
}

absl::StatusOr<JsonRequest> Scan(std::string_view body, Care care) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (body.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    body.remove_prefix(kByteOrderMark.size());
  }
  JsonCursor cursor(body);
  cursor.SkipSpace();
  if (cursor.at() == cursor.end()) {
    return absl::InvalidArgumentError("JSON Parse error: The document is empty");
  }
  JsonRequest request;
  const char* const start = cursor.at();
  if (cursor.Peek() != '{') {
    ASSIGN_OR_RETURN(const JsonValue value, cursor.ReadValue());
    return JsonFormatError(value.text, "Is not object");
  }
  cursor.Take('{');
  cursor.SkipSpace();
  absl::Status bad_signature;
  bool has_signature = false;
  bool more = !cursor.Take('}');
  while (more) {
    ASSIGN_OR_RETURN(const std::string_view name, cursor.ReadName());
    const bool skim = care == Care::kBracketsOfLists && IsFirstOfTensors(name, request);
    cursor.set_lists(skim ? JsonCursor::Lists::kBrackets : JsonCursor::Lists::kChecked);
    ASSIGN_OR_RETURN(const JsonValue value, cursor.ReadValue());
    // Bad syntax further on would be reported first, so this error waits.
    const absl::Status status = TakeMember(name, value, &has_signature, &request);
    if (bad_signature.ok()) bad_signature = status;
    ASSIGN_OR_RETURN(more, cursor.ReadMemberEnd());
  }
  RETURN_IF_ERROR(bad_signature);
  request.unchecked_lists = cursor.skimmed();
  request.body = body;
  request.text = {start, static_cast<size_t>(cursor.at() - start)};
  request.row_format = request.instances.has_value();
  return request;
}

}  // namespace

absl::StatusOr<JsonRequest> ScanJsonRequest(std::string_view body) {
  absl::StatusOr<JsonRequest> request = Scan(body, Care::kBracketsOfLists);
  // Whatever is wrong, bad syntax further to the front is said first.
  return request.ok() ? std::move(request) : Scan(body, Care::kAll);
}

absl::Status CheckSyntax(const JsonRequest& request) {
  return request.unchecked_lists == 0 ? absl::OkStatus() : Scan(request.body, Care::kAll).status();
}

absl::StatusOr<tensor::PredictRequest> JsonTensors(const JsonRequest& request,
                                                   const Signature& signature) {
  if (request.unchecked_lists > 0) {
    if (auto tensors = ReadNests(request, signature)) {
      tensors->spec.signature_name = request.signature_name;
      return *std::move(tensors);
    }
    ASSIGN_OR_RETURN(const JsonRequest checked, Scan(request.body, Care::kAll));
    return JsonTensors(checked, signature);
  }
  if (signature.inputs.empty()) {
    return absl::InvalidArgumentError(
        base::Cat("Failed to get input map for signature: ",
                  request.signature_name.empty() ? "DEFAULT" : request.signature_name));
  }
  RETURN_IF_ERROR(CheckTensorKeys(request));
  Reading reading;
  absl::StatusOr<tensor::PredictRequest> tensors = ReadTensors(request, signature, &reading);
  if (tensors.ok()) tensors->spec.signature_name = request.signature_name;
  return tensors;
}

}  // namespace tensord::wire
