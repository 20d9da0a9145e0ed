// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/request.h"
#include "tensor/signature.h"

// A request meets the signature it names: the checks between the wire and the queue, in the
// original's order and words.
namespace tensord::wire {

inline constexpr std::string_view kDefaultSignature = "serving_default";

// What a worker is asked to run.
// Lifetime: the views are those of the request, or of the signature's defaults.
struct BoundCall {
  std::vector<tensor::TensorView> inputs;  // In the signature's order; defaults filled in.
  std::vector<int> outputs;  // Into signature.outputs, sorted or as output_filter named them.
  int64_t rows = -1;         // The leading dim, when all inputs have one and agree.
  // False when an input's shape is not what the signature says. TensorFlow runs such calls (a feed
  // is not checked against its placeholder's shape), so we do, but they share no batch.
  bool fits_signature = true;
};

// INVALID_ARGUMENT says which input or output, what was expected and what came.
absl::StatusOr<BoundCall> Bind(const tensor::PredictRequest& request,
                               const tensor::Signature& signature);

// A hint for when the run of a call with !fits_signature fails: which inputs do not fit, and how.
// Empty when all do.
std::string DescribeMisfits(const BoundCall& call, const tensor::Signature& signature);

// True when rows of different calls may be joined: every input and output is dense and its leading
// dim is open, as far as the signature tells.
bool IsBatchable(const tensor::Signature& signature);

// Index of the signature of that name; empty means "serving_default".
// FAILED_PRECONDITION for gRPC Predict, INVALID_ARGUMENT for REST: texts of the original.
absl::StatusOr<int> FindSignature(const tensor::SignatureList& signatures, std::string_view name);
absl::StatusOr<int> FindSignatureForJson(const tensor::SignatureList& signatures,
                                         std::string_view name);
// The same for Classify and Regress, and for a task of MultiInference: INVALID_ARGUMENT.
absl::StatusOr<int> FindInferenceSignature(const tensor::SignatureList& signatures,
                                           std::string_view name);
absl::StatusOr<int> FindTaskSignature(const tensor::SignatureList& signatures,
                                      std::string_view name);

// Predict on a signature that is declared for none of predict, classify and regress: INTERNAL, as
// the original. Only where method names are checked at all.
absl::Status CheckPredictMethod(const tensor::Signature& signature);

}  // namespace tensord::wire
