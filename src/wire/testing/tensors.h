// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/signature.h"
#include "tensor/string_layout.h"

// Tensors and signatures for tests, from plain values.
namespace tensord::wire::testing {

template <typename T>
tensor::Tensor MakeTensor(tensor::DType dtype, tensor::Shape shape, const std::vector<T>& values) {
  tensor::Tensor tensor{dtype, shape, tensor::Buffer(values.size() * sizeof(T))};
  if (!values.empty()) {
    std::memcpy(tensor.buffer.bytes().data(), values.data(), tensor.buffer.size());
  }
  return tensor;
}

inline tensor::Tensor MakeStrings(tensor::Shape shape, const std::vector<std::string>& values) {
  uint64_t payload = 0;
  for (const std::string& value : values) payload += value.size();
  tensor::Tensor tensor{tensor::DType::kString, shape,
                        tensor::Buffer(tensor::PackedStringBytes(values.size(), payload))};
  tensor::StringWriter writer(tensor.buffer.bytes(), values.size());
  for (const std::string& value : values) writer.Add(value);
  return tensor;
}

// The elements of a fixed-width tensor.
template <typename T>
std::vector<T> ValuesOf(const tensor::TensorView& view) {
  std::vector<T> values(view.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), view.bytes.data(), values.size() * sizeof(T));
  return values;
}

// The elements of a string tensor; empty when it is malformed.
inline std::vector<std::string> StringsOf(const tensor::TensorView& view) {
  const auto elements = static_cast<uint64_t>(view.shape.elements());
  const auto reader = tensor::StringReader::Open(view.bytes, elements);
  std::vector<std::string> values;
  for (uint64_t i = 0; reader.ok() && i < elements; ++i) values.emplace_back((*reader)[i]);
  return values;
}

// REQUIRES, for a signature: endpoints are given in the order of their names.
inline tensor::Endpoint MakeEndpoint(std::string_view name, tensor::DType dtype,
                                     std::vector<int64_t> dims) {
  tensor::Endpoint endpoint;
  endpoint.name = name;
  endpoint.tensor_name = std::string(name) + ":0";
  endpoint.dtype = dtype;
  endpoint.shape = {.unknown_rank = false, .dims = std::move(dims)};
  return endpoint;
}

}  // namespace tensord::wire::testing
