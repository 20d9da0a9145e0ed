// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <span>

#include "front/exchange.h"
#include "front/grpc.h"
#include "front/handlers/context.h"
#include "wire/rest_route.h"

// Predict, from a client's bytes to its answer, in both protocols: decode, find the version, bind
// to the signature, hand to the queue, encode. docs/life_of_a_request.md walks through it.
namespace tensord::front {

// Answers the exchange exactly once, now or when the model has run.
// Lifetime: `context` outlives every exchange of its loop.
void PredictGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                 std::span<const std::byte> message);

// POST /v1/models/NAME...:predict.
void PredictRest(LoopContext& context, std::shared_ptr<Exchange> exchange,
                 const wire::RestRoute& route);

}  // namespace tensord::front
