// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/unpack.h"

#include "base/status_macros.h"
#include "base/text.h"
#include "fleet/pack.h"
#include "tensor/string_layout.h"

namespace tensord::fleet {
namespace {

// The outputs that are fetched, in order.
std::vector<const tensor::Endpoint*> Fetched(std::span<const tensor::Signature* const> signatures) {
  std::vector<const tensor::Endpoint*> fetched;
  for (const tensor::Signature* signature : signatures) {
    for (const tensor::Endpoint& output : signature->outputs) {
      if (output.dense) fetched.push_back(&output);
    }
  }
  return fetched;
}

absl::Status CheckPlace(const channel::TensorDescriptor& output, const tensor::Endpoint& expected,
                        const Region& region) {
  if (output.dtype == tensor::DType::kInvalid) return absl::OkStatus();  // Nothing came.
  if (output.dtype != expected.dtype) {
    return absl::InvalidArgumentError(base::Cat("output ", expected.name, " is ",
                                                tensor::DTypeName(output.dtype), ", not ",
                                                tensor::DTypeName(expected.dtype)));
  }
  const bool inside = output.offset >= region.offset && output.bytes <= region.bytes &&
                      output.offset - region.offset <= region.bytes - output.bytes;
  if (!inside) {
    return absl::InvalidArgumentError(
        base::Cat("output ", expected.name, " lies outside its region"));
  }
  return absl::OkStatus();
}

absl::Status CopyOut(const channel::TensorDescriptor& output,
                     const channel::ResponseSegment& segment, std::span<std::byte> copy) {
  RETURN_IF_ERROR(channel::CopyFromShared(copy, segment, output.offset));
  // Whoever reads a bool afterwards may rely on 0 and 1.
  if (output.dtype == tensor::DType::kBool) {
    for (std::byte& value : copy) value = std::byte{value != std::byte{0}};
  }
  if (output.dtype != tensor::DType::kString) return absl::OkStatus();
  const auto elements = static_cast<uint64_t>(output.shape.elements());
  return tensor::StringReader::Open(copy, elements).status();
}

}  // namespace

absl::StatusOr<Unpacked> Unpack(const channel::Completion& completion,
                                std::span<const tensor::Signature* const> signatures,
                                const Region& region, const channel::ResponseSegment& segment) {
  const std::vector<const tensor::Endpoint*> expected = Fetched(signatures);
  if (completion.outputs.size() != expected.size()) {
    return absl::InvalidArgumentError(
        base::Cat(completion.outputs.size(), " outputs came, ", expected.size(), " were expected"));
  }
  uint64_t bytes = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    RETURN_IF_ERROR(CheckPlace(completion.outputs[i], *expected[i], region));
    bytes += AlignTensor(completion.outputs[i].bytes);
  }
  // Outputs that overlap could ask for many times the region's size.
  if (bytes > AlignTensor(region.bytes) + 64 * expected.size()) {
    return absl::InvalidArgumentError("the outputs overlap");
  }
  auto buffer = std::make_shared<tensor::Buffer>(bytes);
  Unpacked unpacked;
  uint64_t at = 0;
  size_t next = 0;
  for (const tensor::Signature* signature : signatures) {
    for (const tensor::Endpoint& endpoint : signature->outputs) {
      if (!endpoint.dense) {
        unpacked.outputs.emplace_back();
        continue;
      }
      const channel::TensorDescriptor& output = completion.outputs[next++];
      if (output.dtype == tensor::DType::kInvalid) {
        unpacked.outputs.emplace_back();
        continue;
      }
      const std::span<std::byte> copy = buffer->bytes().subspan(at, output.bytes);
      RETURN_IF_ERROR(CopyOut(output, segment, copy));
      unpacked.outputs.push_back({output.dtype, output.shape, copy});
      at += AlignTensor(output.bytes);
    }
  }
  unpacked.bytes = std::move(buffer);
  return unpacked;
}

}  // namespace tensord::fleet
