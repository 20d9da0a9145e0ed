// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <span>

#include "front/exchange.h"
#include "front/grpc.h"
#include "front/handlers/context.h"

// Server reflection, v1 and v1alpha: tools such as grpcurl learn here what the server offers.
namespace tensord::front {

// One question of the stream, answered at once.
void ReflectionGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                    std::span<const std::byte> message);
void ReflectionEnd(LoopContext& context, std::shared_ptr<Exchange> exchange);

}  // namespace tensord::front
