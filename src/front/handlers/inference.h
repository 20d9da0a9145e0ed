// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <span>

#include "front/exchange.h"
#include "front/grpc.h"
#include "front/handlers/context.h"
#include "wire/rest_route.h"

// Calls whose input is a list of tf.Examples, which the model parses itself. Each answers the
// exchange exactly once, now or when the model has run.
namespace tensord::front {

// PredictionService/Classify, Regress.
void ClassifyGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                  std::span<const std::byte> message);
void RegressGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                 std::span<const std::byte> message);
// PredictionService/MultiInference: several signatures of one model in one run.
void MultiInferenceGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange,
                        const GrpcHead& head, std::span<const std::byte> message);

// POST /v1/models/NAME...:classify, ...:regress.
void InferenceRest(LoopContext& context, std::shared_ptr<Exchange> exchange,
                   const wire::RestRoute& route);

}  // namespace tensord::front
