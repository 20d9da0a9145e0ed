// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <span>

#include "front/exchange.h"
#include "front/grpc.h"
#include "front/handlers/context.h"
#include "wire/rest_route.h"

// What is served, and changing it: status, metadata, reload.
namespace tensord::front {

// ModelService/GetModelStatus. A label in the request is ignored, as in the original.
void StatusGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                std::span<const std::byte> message);
// GET /v1/models/NAME[/versions/N | /labels/L].
void StatusRest(const LoopContext& context, Exchange& exchange, const wire::RestRoute& route);
// GET /v1/models: every configured model, and those that still unload.
void ListRest(const LoopContext& context, Exchange& exchange);

// PredictionService/GetModelMetadata.
void MetadataGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                  std::span<const std::byte> message);
// GET .../metadata.
void MetadataRest(const LoopContext& context, Exchange& exchange, const wire::RestRoute& route);

// ModelService/HandleReloadConfigRequest: answered when the new list holds, or has failed.
void ReloadGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                std::span<const std::byte> message);

}  // namespace tensord::front
