// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/oip/datatype.h"

#include <array>
#include <utility>

namespace tensord::wire {
namespace {

using tensor::DType;

constexpr std::array<std::pair<DType, std::string_view>, 14> kNames = {{
    {DType::kBool, "BOOL"},
    {DType::kUint8, "UINT8"},
    {DType::kUint16, "UINT16"},
    {DType::kUint32, "UINT32"},
    {DType::kUint64, "UINT64"},
    {DType::kInt8, "INT8"},
    {DType::kInt16, "INT16"},
    {DType::kInt32, "INT32"},
    {DType::kInt64, "INT64"},
    {DType::kHalf, "FP16"},
    {DType::kFloat, "FP32"},
    {DType::kDouble, "FP64"},
    {DType::kString, "BYTES"},
    {DType::kBfloat16, "BF16"},
}};

}  // namespace

std::string_view OipName(DType dtype) {
  for (const auto& [type, name] : kNames) {
    if (type == dtype) return name;
  }
  return {};
}

DType OipDType(std::string_view name) {
  for (const auto& [type, known] : kNames) {
    if (known == name) return type;
  }
  return DType::kInvalid;
}

}  // namespace tensord::wire
