// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <span>

#include "front/exchange.h"
#include "front/grpc.h"
#include "front/handlers/context.h"
#include "wire/oip/route.h"

// Health, metadata and repository of the Open Inference Protocol (docs/oip.md).
namespace tensord::front {

// inference.GRPCInferenceService, but ModelInfer.
void OipLiveGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                 std::span<const std::byte> message);
void OipReadyGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                  std::span<const std::byte> message);
void OipModelReadyGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange,
                       const GrpcHead& head, std::span<const std::byte> message);
void OipServerGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                   std::span<const std::byte> message);
void OipModelGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                  std::span<const std::byte> message);
void OipConfigGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                   std::span<const std::byte> message);
void OipIndexGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                  std::span<const std::byte> message);
void OipLoadGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                 std::span<const std::byte> message);
void OipUnloadGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                   std::span<const std::byte> message);

// Everything under /v2. REQUIRES: the route is not kOutside.
void OipRest(LoopContext& context, std::shared_ptr<Exchange> exchange, const wire::OipRoute& route);

}  // namespace tensord::front
