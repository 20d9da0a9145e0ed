// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "front/deflater.h"
#include "front/exchange.h"
#include "front/grpc.h"
#include "front/handlers/context.h"
#include "front/handlers/lookup.h"
#include "sched/call.h"
#include "tensor/request.h"
#include "wire/bind.h"
#include "wire/prediction_log.h"

// The one road of every call that runs a model, whatever it asks for and in whichever protocol: the
// handlers prepare it, this hands it to the queue and sends its answer.
namespace tensord::front {

// A call that passed every check, with what its run and its answer need.
struct PreparedCall {
  Target target;
  std::vector<int> more_signatures = {};  // That run with the target's, as sched::Call says.
  std::shared_ptr<const tensor::PredictRequest> request;  // Owns what `bound` points to.
  wire::BoundCall bound;
  // Makes the answer's body from the outputs of a run that was fine.
  absl::AnyInvocable<absl::StatusOr<std::string>(const PreparedCall&, const sched::CallResult&)
                         const>
      encode;
  absl::Time deadline = absl::InfiniteFuture();  // That the message itself sets.
  uint64_t priority = 0;                         // Likewise; see CriticalityOf.
  // REST: `encode` notes here behind how many bytes of JSON text binary tensors follow, if any do.
  std::shared_ptr<std::optional<size_t>> json_bytes = {};

  // REST: how the answer is compressed; none: not at all.
  std::optional<Deflater::Format> packed_as = {};

  // For the request log: the kind of call, and, where the client's messages were not these, what it
  // and its answer are as serialized messages.
  struct Messages {
    std::string request;
    std::string response;
  };
  wire::LoggedCall logged_as = wire::LoggedCall::kPredict;
  absl::AnyInvocable<absl::StatusOr<Messages>(const PreparedCall&, const sched::CallResult&) const>
      messages = {};
};

// Model, version and signature as an answer names them: a label is not echoed.
tensor::ModelSpec AnsweredSpec(const Servable& servable, int signature);

// When a REST call must be answered that began to arrive then.
absl::Time RestDeadline(const LoopContext& context, absl::Time arrived);

// The outputs that the call asked for, by their names in the signature.
std::vector<tensor::NamedTensor> NameOutputs(const PreparedCall& call,
                                             const sched::CallResult& result);

// A call and its answer as Predict's messages, for PreparedCall::messages.
absl::StatusOr<PreparedCall::Messages> PredictMessages(const PreparedCall& call,
                                                       const sched::CallResult& result);

// Answers the exchange exactly once, now or when the model has run.
// Lifetime: `context` outlives every exchange of its loop.
void RunGrpcCall(const LoopContext& context, std::shared_ptr<Exchange> exchange,
                 const GrpcHead& head, absl::StatusOr<PreparedCall> prepared);
void RunRestCall(const LoopContext& context, std::shared_ptr<Exchange> exchange,
                 absl::StatusOr<PreparedCall> prepared);

}  // namespace tensord::front
