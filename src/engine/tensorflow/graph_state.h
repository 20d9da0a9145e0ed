// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/signature.h"

namespace tensord::engine {

// What a model's graph says about sharing its runs.
struct GraphFindings {
  // Why running one of the signatures changes what later runs answer: the first operation,
  // reachable from the signature's outputs through inputs, control inputs and called functions,
  // that writes a variable, table, queue or the like, as in "AssignAddVariableOp in signature
  // 'incr'". Empty when there is none. What only the init, save and restore operations reach does
  // not count.
  //
  // Files a model writes are not state: the sandbox refuses them.
  std::string stateful_reason;
  // What stands against running rows of several requests together: for each signature, the first
  // operation that its outputs reach and that is not plain (plain_ops.h); empty when all are.
  std::vector<std::string> may_join_rows;
};
// INVALID_ARGUMENT for bytes that are no tensorflow.MetaGraphDef.
absl::StatusOr<GraphFindings> ExamineGraph(std::string_view meta_graph_def,
                                           const tensor::SignatureList& signatures);

// True for an operation (by its op name) that changes state which outlives the run.
bool WritesState(std::string_view op);

}  // namespace tensord::engine
