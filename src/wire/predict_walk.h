// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/request.h"

namespace tensord::wire {

// A PredictRequest whose tensors were found but not looked into: an unknown model is told before a
// malformed tensor.
// Lifetime: the views are into the body.
struct WalkedPredict {
  // One entry of the map of inputs, sorted by name; the last of a name counts.
  struct Entry {
    std::string_view name;
    std::string_view value;
    std::vector<std::string_view> more;  // When the value came again: protobuf merges them.
    size_t place = 0;                    // In the request.
  };

  tensor::ModelSpec spec;
  std::vector<Entry> entries;
  std::vector<std::string_view> output_filter;
};

// Walks a serialized tensorflow.serving.PredictRequest once.
// INVALID_ARGUMENT, in the original's words, for what it would refuse before looking at the model.
absl::StatusOr<WalkedPredict> WalkPredict(std::string_view body);
// Decodes the tensors; they stay where they are in the body whenever their bytes there are the
// packed form already (see tensor_walk.h). INVALID_ARGUMENT, naming the input. Lifetime: the body
// outlives the request.
absl::StatusOr<tensor::PredictRequest> DecodePredict(WalkedPredict walked);
// Both.
absl::StatusOr<tensor::PredictRequest> ParsePredict(std::string_view body);

// The model that a serialized PredictRequest (or ClassificationRequest, RegressionRequest) is for,
// if its ModelSpec is whole, well-formed and the first field, as clients write it. `prefix` may be
// a part of the message.
std::optional<tensor::ModelSpec> PeekModelSpec(std::string_view prefix);

// Where a tensor's content lies in a serialized PredictRequest.
struct ContentPlace {
  size_t offset = 0;  // From the message's beginning.
  uint64_t bytes = 0;
};

// The first tensor_content of at least `least` bytes that begins in `prefix`, a part of the
// message, as far as it can be told from that; nothing is checked.
std::optional<ContentPlace> PeekContent(std::string_view prefix, uint64_t least);

// Adds what a serialized tensorflow.serving.ModelSpec says, as protobuf merges messages.
// INVALID_ARGUMENT when malformed.
absl::Status MergeModelSpec(std::string_view bytes, tensor::ModelSpec* spec);

// A serialized tensorflow.serving.ModelSpec. INVALID_ARGUMENT when malformed or without a name.
absl::StatusOr<tensor::ModelSpec> ParseModelSpec(std::string_view bytes);

}  // namespace tensord::wire
