// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/predict_encode.h"

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/protobuf_wire.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "tensor/string_layout.h"
#include "wire/integers.h"

namespace tensord::wire {
namespace {

using base::AppendTag;
using base::AppendVarint;
using base::VarintBytes;
using base::WireType;
using tensor::DType;
using tensor::TensorView;

constexpr uint32_t kContentField = 4;
constexpr uint32_t kStringField = 8;

// How a tensor's values are written.
enum class Form : uint8_t {
  kRaw,            // The packed form as it is: one length-delimited field.
  kVarints,        // Each value as a varint, packed.
  kBools,          // As varints of one byte, made 0 or 1 on the way.
  kStrings,        // A field each.
  kStringContent,  // Lengths, then bytes, in tensor_content.
  kNothing,        // No elements.
};

struct Plan {
  uint32_t field = 0;
  Form form = Form::kNothing;
  std::optional<tensor::StringReader> strings;
  uint64_t payload_bytes = 0;  // Of the length-delimited field; for kStrings of all fields.
  uint64_t shape_bytes = 0;
  uint64_t tensor_bytes = 0;
  uint64_t entry_bytes = 0;
};

uint32_t TypedFieldOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat:
      return 5;
    case DType::kDouble:
      return 6;
    case DType::kComplex64:
      return 9;
    case DType::kInt64:
      return 10;
    case DType::kBool:
      return 11;
    case DType::kComplex128:
      return 12;
    case DType::kHalf:
    case DType::kBfloat16:
      return 13;
    case DType::kUint32:
      return 16;
    case DType::kUint64:
      return 17;
    default:
      return 7;  // int_val: the narrow integers.
  }
}

bool IsRaw(DType dtype) {
  return dtype == DType::kFloat || dtype == DType::kDouble || dtype == DType::kComplex64 ||
         dtype == DType::kComplex128;
}

uint64_t FieldBytes(uint32_t field, uint64_t payload_bytes) {
  return static_cast<uint64_t>(VarintBytes(static_cast<uint64_t>(field) << 3)) +
         static_cast<uint64_t>(VarintBytes(payload_bytes)) + payload_bytes;
}

uint64_t DimBytes(int64_t dim) {
  return dim == 0 ? 0 : 1 + static_cast<uint64_t>(VarintBytes(static_cast<uint64_t>(dim)));
}

absl::Status BadOutput(std::string_view what) {
  return absl::InternalError(base::Cat("the worker's output is malformed: ", what));
}

absl::Status PlanStrings(const TensorView& tensor, bool as_content, Plan* plan) {
  const auto elements = static_cast<uint64_t>(tensor.shape.elements());
  auto reader = tensor::StringReader::Open(tensor.bytes, elements);
  if (!reader.ok()) return BadOutput(base::Message(reader.status()));
  plan->strings = *std::move(reader);
  plan->form = as_content ? Form::kStringContent : Form::kStrings;
  plan->field = as_content ? kContentField : kStringField;
  for (uint64_t i = 0; i < elements; ++i) {
    const uint64_t size = (*plan->strings)[i].size();
    plan->payload_bytes += as_content ? static_cast<uint64_t>(VarintBytes(size)) + size
                                      : FieldBytes(kStringField, size);
  }
  return absl::OkStatus();
}

absl::Status PlanNumbers(const TensorView& tensor, bool as_content, Plan* plan) {
  ASSIGN_OR_RETURN(const uint64_t bytes, tensor::FixedBytes(tensor.dtype, tensor.shape));
  if (!tensor::IsServable(tensor.dtype) || bytes != tensor.bytes.size()) {
    return BadOutput(base::Cat(tensor.bytes.size(), " bytes for a ",
                               tensor::DTypeName(tensor.dtype), " tensor of shape ",
                               tensor.shape.ToString()));
  }
  plan->field = as_content ? kContentField : TypedFieldOf(tensor.dtype);
  plan->payload_bytes = bytes;
  if (tensor.dtype == DType::kBool) {
    plan->form = Form::kBools;
  } else if (as_content || IsRaw(tensor.dtype)) {
    plan->form = Form::kRaw;
  } else {
    plan->form = Form::kVarints;
    plan->payload_bytes = 0;
    ForEachInteger(tensor, [&](uint64_t value) {
      plan->payload_bytes += static_cast<uint64_t>(VarintBytes(value));
    });
  }
  return absl::OkStatus();
}

absl::StatusOr<Plan> MakePlan(const tensor::NamedTensor& output, bool as_content) {
  const TensorView& tensor = output.tensor;
  Plan plan;
  if (tensor.shape.elements() > 0) {
    RETURN_IF_ERROR(tensor.dtype == DType::kString ? PlanStrings(tensor, as_content, &plan)
                                                   : PlanNumbers(tensor, as_content, &plan));
  }
  for (const int64_t dim : tensor.shape.dims()) plan.shape_bytes += FieldBytes(2, DimBytes(dim));
  plan.tensor_bytes = 1 + static_cast<uint64_t>(VarintBytes(static_cast<uint64_t>(tensor.dtype)));
  plan.tensor_bytes += FieldBytes(2, plan.shape_bytes);
  if (plan.form == Form::kStrings) {
    plan.tensor_bytes += plan.payload_bytes;
  } else if (plan.form != Form::kNothing) {
    plan.tensor_bytes += FieldBytes(plan.field, plan.payload_bytes);
  }
  plan.entry_bytes = FieldBytes(1, output.name.size()) + FieldBytes(2, plan.tensor_bytes);
  return plan;
}

void AppendHeader(uint32_t field, uint64_t payload_bytes, std::string* out) {
  AppendTag(field, WireType::kBytes, out);
  AppendVarint(payload_bytes, out);
}

void AppendShape(const TensorView& tensor, const Plan& plan, std::string* out) {
  AppendHeader(2, plan.shape_bytes, out);
  for (const int64_t dim : tensor.shape.dims()) {
    AppendHeader(2, DimBytes(dim), out);
    if (dim != 0) base::AppendVarintField(1, static_cast<uint64_t>(dim), out);
  }
}

void AppendBytes(std::span<const std::byte> bytes, std::string* out) {
  out->append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void AppendStrings(const Plan& plan, std::string* out) {
  const tensor::StringReader& strings = *plan.strings;
  if (plan.form == Form::kStrings) {
    for (uint64_t i = 0; i < strings.size(); ++i) {
      base::AppendBytesField(kStringField, strings[i], out);
    }
    return;
  }
  for (uint64_t i = 0; i < strings.size(); ++i) AppendVarint(strings[i].size(), out);
  out->append(strings.payload());
}

void AppendValues(const TensorView& tensor, const Plan& plan, std::string* out) {
  if (plan.form == Form::kNothing) return;
  if (plan.form != Form::kStrings) AppendHeader(plan.field, plan.payload_bytes, out);
  switch (plan.form) {
    case Form::kRaw:
      return AppendBytes(tensor.bytes, out);
    case Form::kVarints:
      return ForEachInteger(tensor, [out](uint64_t value) { AppendVarint(value, out); });
    case Form::kBools:
      for (const std::byte value : tensor.bytes) out->push_back(value != std::byte{0} ? 1 : 0);
      return;
    default:
      return AppendStrings(plan, out);
  }
}

void AppendEntry(uint32_t map_field, const tensor::NamedTensor& output, const Plan& plan,
                 std::string* out) {
  AppendHeader(map_field, plan.entry_bytes, out);
  base::AppendBytesField(1, output.name, out);
  AppendHeader(2, plan.tensor_bytes, out);
  base::AppendVarintField(1, static_cast<uint64_t>(output.tensor.dtype), out);
  AppendShape(output.tensor, plan, out);
  AppendValues(output.tensor, plan, out);
}

struct Fields {
  uint32_t spec;
  uint32_t tensors;
};

absl::StatusOr<std::string> Encode(const Fields& fields, const tensor::ModelSpec& named,
                                   std::span<const tensor::NamedTensor> tensors,
                                   bool as_tensor_content) {
  const std::string spec = EncodeModelSpec(named);
  std::vector<Plan> plans;
  plans.reserve(tensors.size());
  uint64_t bytes = FieldBytes(fields.spec, spec.size());
  for (const tensor::NamedTensor& tensor : tensors) {
    ASSIGN_OR_RETURN(Plan plan, MakePlan(tensor, as_tensor_content));
    bytes += FieldBytes(fields.tensors, plan.entry_bytes);
    plans.push_back(std::move(plan));
  }
  std::string out;
  out.reserve(bytes);
  for (size_t i = 0; i < tensors.size(); ++i) {
    AppendEntry(fields.tensors, tensors[i], plans[i], &out);
  }
  base::AppendBytesField(fields.spec, spec, &out);
  return out;
}

}  // namespace

std::string EncodeModelSpec(const tensor::ModelSpec& spec) {
  std::string out;
  if (!spec.name.empty()) base::AppendBytesField(1, spec.name, &out);
  if (spec.version.has_value()) {
    std::string version;
    if (*spec.version != 0) {
      base::AppendVarintField(1, static_cast<uint64_t>(*spec.version), &version);
    }
    base::AppendBytesField(2, version, &out);
  }
  if (!spec.signature_name.empty()) base::AppendBytesField(3, spec.signature_name, &out);
  return out;
}

absl::StatusOr<std::string> EncodePredictResponse(const tensor::ModelSpec& answered,
                                                  std::span<const tensor::NamedTensor> outputs,
                                                  bool as_tensor_content) {
  return Encode({.spec = 2, .tensors = 1}, answered, outputs, as_tensor_content);
}

absl::StatusOr<std::string> EncodePredictRequest(const tensor::ModelSpec& asked,
                                                 std::span<const tensor::NamedTensor> inputs) {
  return Encode({.spec = 1, .tensors = 2}, asked, inputs, /*as_tensor_content=*/true);
}

}  // namespace tensord::wire
