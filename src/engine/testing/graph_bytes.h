// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/protobuf_wire.h"

// Serialized pieces of TensorFlow's protobuf messages, for tests. Field numbers are those of
// tensorflow/core/framework and tensorflow/core/protobuf.
namespace tensord::engine {

inline std::string BytesField(uint32_t field, std::string_view value) {
  std::string out;
  base::AppendBytesField(field, value, &out);
  return out;
}
inline std::string NumberField(uint32_t field, uint64_t value) {
  std::string out;
  base::AppendVarintField(field, value, &out);
  return out;
}
inline std::string MapEntry(uint32_t field, std::string_view key, std::string_view value) {
  return BytesField(field, BytesField(1, key) + BytesField(2, value));
}

// TensorShapeProto.
inline std::string ShapeBytes(const std::vector<int64_t>& dims) {
  std::string out;
  for (const int64_t dim : dims) {
    out += BytesField(2, NumberField(1, static_cast<uint64_t>(dim)));
  }
  return out;
}
// TensorInfo.
inline std::string TensorInfoBytes(std::string_view name, uint64_t dtype,
                                   std::string_view shape = "") {
  return BytesField(1, name) + NumberField(2, dtype) + BytesField(3, shape);
}

// NodeDef, with functions as attributes `f`.
struct NodeSpec {
  std::string name;
  std::string op;
  std::vector<std::string> inputs = {};
  std::vector<std::string> functions = {};
  std::vector<std::string> listed_functions = {};  // In one attribute that is a list.
};
inline std::string NodeBytes(const NodeSpec& node) {
  std::string out = BytesField(1, node.name) + BytesField(2, node.op);
  for (const std::string& input : node.inputs) out += BytesField(3, input);
  for (const std::string& function : node.functions) {
    out += MapEntry(5, "f", BytesField(10, BytesField(1, function)));
  }
  std::string list;
  for (const std::string& function : node.listed_functions) {
    list += BytesField(9, BytesField(1, function));
  }
  if (!list.empty()) out += MapEntry(5, "branches", BytesField(1, list));
  return out;
}
inline std::string FunctionBytes(std::string_view name, const std::vector<NodeSpec>& nodes) {
  std::string out = BytesField(1, BytesField(1, name));
  for (const NodeSpec& node : nodes) out += BytesField(3, NodeBytes(node));
  return out;
}
// MetaGraphDef with a GraphDef of these nodes and functions (FunctionDef bytes).
inline std::string MetaGraphBytes(const std::vector<NodeSpec>& nodes,
                                  const std::vector<std::string>& functions = {}) {
  std::string graph;
  for (const NodeSpec& node : nodes) graph += BytesField(1, NodeBytes(node));
  std::string library;
  for (const std::string& function : functions) library += BytesField(1, function);
  return BytesField(2, graph + BytesField(2, library));
}

}  // namespace tensord::engine
