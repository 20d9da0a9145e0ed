// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "front/exchange.h"
#include "front/handlers/context.h"

// What orchestrators ask.
namespace tensord::front {

// GET /livez: 200 as long as the front turns its loops.
void LiveProbe(Exchange& exchange);
// GET /readyz: 200 when every configured model has been available and the server is not draining,
// else 503, each with a line a model.
void ReadyProbe(const LoopContext& context, Exchange& exchange);
// OPTIONS under /v1/: answered whether or not CORS is on, as the original does.
void Preflight(Exchange& exchange, bool cors);

}  // namespace tensord::front
