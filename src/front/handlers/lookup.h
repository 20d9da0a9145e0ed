// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "front/handlers/context.h"
#include "tensor/request.h"
#include "wire/rest_route.h"

namespace tensord::front {

// How to look a signature up: the calls differ in the words and code of a miss.
enum class SignatureWords : uint8_t {
  kGrpc,       // Predict over gRPC.
  kRest,       // Predict over REST.
  kInference,  // Classify and Regress.
  kOip,        // The Open Inference Protocol: without a name, the only signature will do.
};

// The version and signature that a call is for. The shared_ptr keeps the version's data alive.
struct Target {
  std::shared_ptr<const Servable> servable;
  int signature = 0;

  const tensor::Signature& definition() const {
    return servable->signatures[static_cast<size_t>(signature)];
  }
};

// What the URL of an inference call and the name in its body ask for.
tensor::ModelSpec SpecOf(const wire::RestRoute& route, std::string_view signature_name);

// The signature that the Open Inference Protocol calls and describes when none is named:
// serving_default, else the only one; -1 when there is neither.
int DefaultOipSignature(const tensor::SignatureList& signatures);

// INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION or UNAVAILABLE in the original's words, with
// what exists behind them. What was asked for and what was found is noted in the trace: that is how
// a request comes to be counted under its model, version and signature.
absl::StatusOr<std::shared_ptr<const Servable>> FindServable(const LoopContext& context,
                                                             const tensor::ModelSpec& spec,
                                                             Trace& trace);
absl::StatusOr<Target> FindTarget(const LoopContext& context, const tensor::ModelSpec& spec,
                                  SignatureWords words, Trace& trace);

}  // namespace tensord::front
