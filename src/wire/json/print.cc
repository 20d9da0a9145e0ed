// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/json/print.h"

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/text.h"
#include "base/utf8.h"
#include "tensor/string_layout.h"
#include "wire/json/base64.h"
#include "wire/json/number.h"
#include "wire/json/pretty_writer.h"

namespace tensord::wire {
namespace {

using tensor::DType;
using tensor::NamedTensor;
using tensor::TensorView;

// One output on its way into the text.
class TensorPrinter {
 public:
  // INTERNAL when the bytes are not the packed form, INVALID_ARGUMENT when JSON has no form for the
  // dtype.
  static absl::StatusOr<TensorPrinter> Make(const NamedTensor& output);

  std::string_view name() const { return name_; }
  const tensor::Shape& shape() const { return tensor_.shape; }
  // Prints the next value or nest of lists, from this dim inward. The rank bounds the recursion.
  void Print(int dim, PrettyWriter* writer);

 private:
  explicit TensorPrinter(const NamedTensor& output) : name_(output.name), tensor_(output.tensor) {}

  template <typename T>
  T Next();
  void PrintElement(PrettyWriter* writer);
  void PrintString(PrettyWriter* writer);

  std::string_view name_;
  TensorView tensor_;
  std::optional<tensor::StringReader> strings_;
  size_t next_ = 0;  // The element to print next.
};

absl::Status BadOutput(const NamedTensor& output, std::string_view what) {
  return absl::InternalError(
      base::Cat("the worker's output \"", output.name, "\" is malformed: ", what));
}

bool HasJsonForm(DType dtype) {
  return tensor::IsServable(dtype) && dtype != DType::kComplex64 && dtype != DType::kComplex128;
}

absl::StatusOr<TensorPrinter> TensorPrinter::Make(const NamedTensor& output) {
  const TensorView& tensor = output.tensor;
  TensorPrinter printer(output);
  if (tensor.shape.elements() == 0) return printer;
  if (!HasJsonForm(tensor.dtype)) {
    return absl::InvalidArgumentError(
        base::Cat("Failed to write JSON value for tensor type: ", tensor::DTypeName(tensor.dtype),
                  " (output \"", output.name, "\")"));
  }
  if (tensor.dtype == DType::kString) {
    const auto elements = static_cast<uint64_t>(tensor.shape.elements());
    auto reader = tensor::StringReader::Open(tensor.bytes, elements);
    if (!reader.ok()) return BadOutput(output, base::Message(reader.status()));
    printer.strings_ = *std::move(reader);
    return printer;
  }
  ASSIGN_OR_RETURN(const uint64_t bytes, tensor::FixedBytes(tensor.dtype, tensor.shape));
  if (bytes != tensor.bytes.size()) {
    return BadOutput(output,
                     base::Cat(tensor.bytes.size(), " bytes for shape ", tensor.shape.ToString()));
  }
  return printer;
}

void TensorPrinter::Print(int dim, PrettyWriter* writer) {
  if (dim >= tensor_.shape.rank()) return PrintElement(writer);
  writer->StartArray();
  const int64_t size = tensor_.shape.dim(dim);
  if (tensor_.dtype == DType::kFloat && dim + 1 == tensor_.shape.rank()) {
    const size_t bytes = static_cast<size_t>(size) * sizeof(float);
    writer->Floats(tensor_.bytes.subspan(next_ * sizeof(float), bytes));
    next_ += static_cast<size_t>(size);
  } else {
    for (int64_t i = 0; i < size; ++i) Print(dim + 1, writer);
  }
  writer->EndArray();
}

template <typename T>
T TensorPrinter::Next() {
  T value;
  std::memcpy(&value, tensor_.bytes.data() + next_ * sizeof(T), sizeof(T));
  ++next_;
  return value;
}

void TensorPrinter::PrintString(PrettyWriter* writer) {
  const std::string_view value = (*strings_)[next_++];
  if (!name_.ends_with("_bytes")) return writer->String(value);
  writer->StartObject();
  writer->Name("b64");
  std::string* const out = writer->BeginValue();
  out->push_back('"');
  AppendBase64(value, out);
  out->push_back('"');
  writer->EndObject();
}

void TensorPrinter::PrintElement(PrettyWriter* writer) {
  if (tensor_.dtype == DType::kString) return PrintString(writer);
  std::string* const out = writer->BeginValue();
  switch (tensor_.dtype) {
    case DType::kFloat:
      return AppendReal(Next<float>(), out);
    case DType::kDouble:
      return AppendReal(Next<double>(), out);
    case DType::kHalf:
      return AppendReal(HalfValue(Next<uint16_t>()), out);
    case DType::kBfloat16:
      return AppendReal(Bfloat16Value(Next<uint16_t>()), out);
    case DType::kInt8:
      return base::AppendPiece(out, static_cast<int>(Next<int8_t>()));
    case DType::kUint8:
      return base::AppendPiece(out, static_cast<int>(Next<uint8_t>()));
    case DType::kInt16:
      return base::AppendPiece(out, Next<int16_t>());
    case DType::kUint16:
      return base::AppendPiece(out, Next<uint16_t>());
    case DType::kInt32:
      return base::AppendPiece(out, Next<int32_t>());
    case DType::kUint32:
      return base::AppendPiece(out, Next<uint32_t>());
    case DType::kInt64:
      return base::AppendPiece(out, Next<int64_t>());
    case DType::kUint64:
      return base::AppendPiece(out, Next<uint64_t>());
    default:
      return base::AppendPiece(out, Next<uint8_t>() != 0);
  }
}

absl::Status CheckRows(std::span<const NamedTensor> outputs) {
  const tensor::Shape& first = outputs.front().tensor.shape;
  for (const NamedTensor& output : outputs) {
    const tensor::Shape& shape = output.tensor.shape;
    if (shape.rank() == 0) {
      return absl::InvalidArgumentError(
          base::Cat("Tensor name: ", output.name, " has no shape information "));
    }
    if (shape.dim(0) != first.dim(0)) {
      return absl::InvalidArgumentError(base::Cat("Tensor name: ", output.name,
                                                  " has inconsistent batch size: ", shape.dim(0),
                                                  " expecting: ", first.dim(0)));
    }
  }
  return absl::OkStatus();
}

void PrintRows(std::vector<TensorPrinter>* printers, PrettyWriter* writer) {
  const bool objects = printers->size() > 1;
  const int64_t rows = printers->front().shape().dim(0);
  writer->Name("predictions");
  writer->StartArray();
  for (int64_t row = 0; row < rows; ++row) {
    if (objects) writer->StartObject();
    writer->set_single_line(true);
    for (TensorPrinter& printer : *printers) {
      if (objects) writer->Name(printer.name());
      printer.Print(1, writer);
    }
    writer->set_single_line(false);
    if (objects) writer->EndObject();
  }
  writer->EndArray();
}

void PrintColumns(std::vector<TensorPrinter>* printers, PrettyWriter* writer) {
  const bool objects = printers->size() > 1;
  writer->Name("outputs");
  if (objects) writer->StartObject();
  for (TensorPrinter& printer : *printers) {
    if (objects) writer->Name(printer.name());
    printer.Print(0, writer);
  }
  if (objects) writer->EndObject();
}

}  // namespace

absl::StatusOr<std::string> PrintPredictions(bool row_format,
                                             std::span<const NamedTensor> outputs) {
  if (outputs.empty()) {
    return absl::InvalidArgumentError("Cannot convert empty tensor map to JSON");
  }
  if (row_format) RETURN_IF_ERROR(CheckRows(outputs));
  std::vector<TensorPrinter> printers;
  for (const NamedTensor& output : outputs) {
    ASSIGN_OR_RETURN(TensorPrinter printer, TensorPrinter::Make(output));
    printers.push_back(std::move(printer));
  }
  std::string out;
  PrettyWriter writer(&out);
  writer.StartObject();
  if (row_format) {
    PrintRows(&printers, &writer);
  } else {
    PrintColumns(&printers, &writer);
  }
  writer.EndObject();
  return out;
}

std::string PrintInference(const InferenceResult& result) {
  std::string out;
  PrettyWriter writer(&out);
  writer.StartObject();
  writer.Name("results");
  const bool classes = result.method == InferenceMethod::kClassify;
  writer.set_single_line(!classes);
  writer.StartArray();
  for (int64_t row = 0; row < result.rows; ++row) {
    writer.set_single_line(true);
    if (!classes) {
      AppendReal(result.value(row, 0), writer.BeginValue());
      continue;
    }
    writer.StartArray();
    for (int64_t column = 0; column < result.columns; ++column) {
      writer.StartArray();
      writer.String(result.label(row, column));
      AppendReal(result.value(row, column), writer.BeginValue());
      writer.EndArray();
    }
    writer.EndArray();
    writer.set_single_line(false);
  }
  writer.EndArray();
  writer.EndObject();
  return out;
}

std::string PrintError(std::string_view message) {
  std::string out;
  PrettyWriter writer(&out);
  writer.StartObject();
  writer.Name("error");
  writer.String(base::ToUtf8(message));
  writer.EndObject();
  return out;
}

void AppendJsonString(std::string_view text, std::string* out) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  constexpr std::string_view kCharacters = "\"\\\b\f\n\r\t";
  constexpr std::string_view kCodes = "\"\\bfnrt";
  out->push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && c != '"' && c != '\\') {
      out->push_back(c);
      continue;
    }
    out->push_back('\\');
    const size_t code = kCharacters.find(c);
    if (code != std::string_view::npos) {
      out->push_back(kCodes[code]);
    } else {
      out->append("u00");
      out->push_back(kHex[byte >> 4]);
      out->push_back(kHex[byte & 0xf]);
    }
  }
  out->push_back('"');
}

}  // namespace tensord::wire
