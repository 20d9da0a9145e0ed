// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "front/exchange.h"
#include "front/grpc.h"
#include "front/handlers/context.h"
#include "wire/oip/route.h"

// Triton's statistics extension: what the metrics page has of inference calls, a version an entry.
namespace tensord::front {

void OipStatisticsGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange,
                       const GrpcHead& head, std::span<const std::byte> message);
// REQUIRES: a route of kStatistics.
void OipStatisticsRest(const LoopContext& context, Exchange& exchange, const wire::OipRoute& route);

}  // namespace tensord::front
