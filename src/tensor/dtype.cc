// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "tensor/dtype.h"

#include <array>

namespace tensord::tensor {
namespace {

struct Row {
  std::string_view name;
  size_t element_bytes;
  bool servable;
};

constexpr std::array<Row, 31> kRows = {{
    {"invalid", 0, false},
    {"float", 4, true},
    {"double", 8, true},
    {"int32", 4, true},
    {"uint8", 1, true},
    {"int16", 2, true},
    {"int8", 1, true},
    {"string", 0, true},
    {"complex64", 8, true},
    {"int64", 8, true},
    {"bool", 1, true},
    {"qint8", 0, false},
    {"quint8", 0, false},
    {"qint32", 0, false},
    {"bfloat16", 2, true},
    {"qint16", 0, false},
    {"quint16", 0, false},
    {"uint16", 2, true},
    {"complex128", 16, true},
    {"half", 2, true},
    {"resource", 0, false},
    {"variant", 0, false},
    {"uint32", 4, true},
    {"uint64", 8, true},
    {"float8_e5m2", 0, false},
    {"float8_e4m3fn", 0, false},
    {"float8_e4m3fnuz", 0, false},
    {"float8_e4m3b11fnuz", 0, false},
    {"float8_e5m2fnuz", 0, false},
    {"int4", 0, false},
    {"uint4", 0, false},
}};

constexpr Row kUnknown = {"unknown", 0, false};

const Row& RowOf(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  return index < kRows.size() ? kRows[index] : kUnknown;
}

}  // namespace

std::string_view DTypeName(DType dtype) { return RowOf(dtype).name; }
bool IsServable(DType dtype) { return RowOf(dtype).servable; }
size_t ElementBytes(DType dtype) { return RowOf(dtype).element_bytes; }

}  // namespace tensord::tensor
