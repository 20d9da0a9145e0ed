// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/router.h"

#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "front/grpc.h"
#include "front/handlers/authorize.h"
#include "front/handlers/models.h"
#include "front/handlers/predict.h"
#include "front/handlers/probes.h"
#include "front/handlers/reply.h"
#include "wire/rest_route.h"

namespace tensord::front {
namespace {

using Message = std::span<const std::byte>;
using GrpcHandler = void (*)(LoopContext&, std::shared_ptr<Exchange>, const GrpcHead&, Message);

struct GrpcMethod {
  std::string_view service;
  std::string_view method;
  GrpcHandler handler;
};

constexpr std::array kGrpcMethods = {
    GrpcMethod{"tensorflow.serving.PredictionService", "Predict", PredictGrpc},
    GrpcMethod{"tensorflow.serving.PredictionService", "GetModelMetadata", MetadataGrpc},
    GrpcMethod{"tensorflow.serving.ModelService", "GetModelStatus", StatusGrpc},
    GrpcMethod{"tensorflow.serving.ModelService", "HandleReloadConfigRequest", ReloadGrpc},
    GrpcMethod{"grpc.health.v1.Health", "Check", HealthCheckGrpc},
};

const GrpcMethod* FindMethod(const GrpcHead& head) {
  for (const GrpcMethod& row : kGrpcMethods) {
    if (row.method == head.method && row.service == head.service) return &row;
  }
  return nullptr;
}

std::string_view PathOf(std::string_view target) { return target.substr(0, target.find('?')); }

}  // namespace

Router::Router(ServerContext* server, loop::EventLoop* loop) {
  context_.server = server;
  context_.loop = loop;
  context_.snapshot = std::make_shared<models::Snapshot>();
}

void Router::OnHead(Exchange& exchange) {
  if (!IsGrpc(exchange.head())) return;
  const absl::StatusOr<GrpcHead> head = ParseGrpcHead(exchange.head());
  if (!head.ok()) return ReplyGrpc(exchange, head.status());
  if (FindMethod(*head) == nullptr) {
    ReplyGrpc(exchange, absl::UnimplementedError(base::Cat("this server has no method ",
                                                           head->service, "/", head->method)));
  }
}

void Router::OnRequest(std::shared_ptr<Exchange> exchange) {
  if (IsGrpc(exchange->head())) {
    OnGrpc(std::move(exchange));
  } else {
    OnHttp(std::move(exchange));
  }
}

void Router::OnGrpc(std::shared_ptr<Exchange> exchange) {
  const absl::StatusOr<GrpcHead> head = ParseGrpcHead(exchange->head());
  if (!head.ok()) return ReplyGrpc(*exchange, head.status());
  const absl::StatusOr<Message> message = ReadGrpcMessage(exchange->body());
  if (!message.ok()) return ReplyGrpc(*exchange, message.status());
  const GrpcMethod* method = FindMethod(*head);  // OnHead let none but known ones through.
  method->handler(context_, std::move(exchange), *head, *message);
}

void Router::OnHttp(std::shared_ptr<Exchange> exchange) {
  const RequestHead& head = exchange->head();
  const std::string_view path = PathOf(head.target);
  if (path == "/livez") return LiveProbe(*exchange);
  if (path == "/readyz") return ReadyProbe(context_, *exchange);
  const std::string& metrics_path = context_.server->metrics_path;
  if (!metrics_path.empty() && path == metrics_path) {
    if (path != head.target) {
      return ReplyText(*exchange, 400, base::Cat("Unexpected path: ", head.target, "\n"));
    }
    return context_.server->metrics_page(std::move(exchange));
  }
  OnRest(std::move(exchange));
}

void Router::OnRest(std::shared_ptr<Exchange> exchange) {
  const RequestHead& head = exchange->head();
  const bool cors = context_.server->options->rest_api_enable_cors_support;
  const wire::RestRoute route = wire::ParseRestRoute(head.method, head.target);
  switch (route.kind) {
    case wire::RestKind::kPredict:
      return PredictRest(context_, std::move(exchange), route);
    case wire::RestKind::kStatus:
      return StatusRest(context_, *exchange, route);
    case wire::RestKind::kMetadata:
      return MetadataRest(context_, *exchange, route);
    case wire::RestKind::kPreflight:
      return Preflight(*exchange, cors);
    case wire::RestKind::kClassify:
    case wire::RestKind::kRegress:
      return ReplyJsonError(
          *exchange,
          absl::UnimplementedError(
              "this server does not answer :classify and :regress yet; call :predict with "
              "serialized tf.Example strings as the signature's input"),
          cors);
    case wire::RestKind::kBad:
      return ReplyJsonError(*exchange, route.error, cors);
    case wire::RestKind::kOutside:
      return ReplyText(*exchange, 404,
                       base::Cat("Nothing is served at ", PathOf(head.target),
                                 "; models are under /v1/models/NAME\n"));
  }
}

}  // namespace tensord::front
