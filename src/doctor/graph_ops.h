// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <set>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tensor/signature.h"

namespace tensord::doctor {

// What a saved_model.pb says, as far as a client or an operator can be surprised by it.
struct GraphFacts {
  std::set<std::string> tags;
  std::string saved_by;       // TensorFlow's version, as the file tells.
  std::set<std::string> ops;  // That its nodes use, without its own functions.
  tensor::SignatureList signatures;
  std::string stateful;  // Why its runs keep state; empty when they do not.
};

// Of the graph with the tag "serve", or the first. INVALID_ARGUMENT for other bytes.
absl::StatusOr<GraphFacts> ReadGraph(std::string_view saved_model);

}  // namespace tensord::doctor
