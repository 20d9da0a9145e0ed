// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/litert/c_api.h"

namespace tensord::engine {

// A tensor of a model.tflite, as its file says.
struct LiteTensor {
  std::string name;
  int32_t type = 0;                          // TensorFlow Lite's number.
  std::optional<std::vector<int32_t>> dims;  // Below zero: open. Unset: not even the rank is known.
  const void* identity = nullptr;            // The same for an input that is an output, too.
};

// An input or output of what LiteRT can run, in the order in which it takes buffers.
struct LiteEndpoint {
  std::string name;  // The signature's.
  LiteTensor tensor;
};

// What LiteRT can run: a signature of the file, or, where it has none, its graph.
struct LiteRunner {
  std::string key;
  bool main = false;  // It runs the file's first subgraph.
  std::vector<LiteEndpoint> inputs;
  std::vector<LiteEndpoint> outputs;
  std::vector<int> ops;  // Numbers of the operations of its subgraph.
};

struct LiteFile {
  std::vector<LiteRunner> runners;  // By LiteRT's number.
  std::string signature_metadata;   // Serialized; see signature_metadata.h.
};

// Reads it from the opened model. INVALID_ARGUMENT when it is not consistent in itself.
absl::StatusOr<LiteFile> ReadLiteFile(const LiteRtApi& api, LiteRtModel* model);

}  // namespace tensord::engine
