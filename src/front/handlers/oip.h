// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <span>

#include "front/exchange.h"
#include "front/grpc.h"
#include "front/handlers/context.h"
#include "wire/oip/route.h"

// Inference by the Open Inference Protocol (docs/oip.md), on the road of every other call.
namespace tensord::front {

// inference.GRPCInferenceService/ModelInfer. Answers the exchange exactly once.
// Lifetime: `context` outlives every exchange of its loop.
void OipInferGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                  std::span<const std::byte> message);

// POST /v2/models/NAME[/versions/V]/infer.
void OipInferRest(LoopContext& context, std::shared_ptr<Exchange> exchange,
                  const wire::OipRoute& route);

}  // namespace tensord::front
