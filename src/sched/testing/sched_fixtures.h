// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "sched/queue_options.h"
#include "sched/rows.h"

// Small tensors, calls and signatures for tests of the scheduler.
namespace tensord::sched {

// A float tensor with bytes of its own: first, first + 1, ...
inline OwnedViews Floats(const tensor::Shape& shape, float first) {
  auto values = std::make_shared<std::vector<float>>(static_cast<size_t>(shape.elements()));
  std::iota(values->begin(), values->end(), first);
  OwnedViews owned;
  owned.tensors = {{.dtype = tensor::DType::kFloat,
                    .shape = shape,
                    .bytes = std::as_bytes(std::span<const float>(*values))}};
  owned.keep = std::move(values);
  return owned;
}

inline OwnedViews Strings(const tensor::Shape& shape, const std::vector<std::string>& values) {
  uint64_t payload_bytes = 0;
  for (const std::string& value : values) payload_bytes += value.size();
  auto buffer =
      std::make_shared<tensor::Buffer>(tensor::PackedStringBytes(values.size(), payload_bytes));
  tensor::StringWriter writer(buffer->bytes(), values.size());
  for (const std::string& value : values) writer.Add(value);
  OwnedViews owned;
  owned.tensors = {
      {.dtype = tensor::DType::kString, .shape = shape, .bytes = std::as_const(*buffer).bytes()}};
  owned.keep = std::move(buffer);
  return owned;
}

inline std::vector<float> FloatsOf(const tensor::TensorView& tensor) {
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

inline std::vector<std::string> StringsOf(const tensor::TensorView& tensor) {
  const auto elements = static_cast<uint64_t>(tensor.shape.elements());
  const auto reader = tensor::StringReader::Open(tensor.bytes, elements);
  std::vector<std::string> values;
  for (uint64_t i = 0; reader.ok() && i < elements; ++i) values.emplace_back((*reader)[i]);
  return values;
}

// A signature x -> y whose rows may be batched.
inline SignatureRows OpenSignature() { return {.inputs = 1, .open = SignatureRows::Open::kYes}; }

}  // namespace tensord::sched
