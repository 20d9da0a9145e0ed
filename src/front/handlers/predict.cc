// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/predict.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "front/handlers/authorize.h"
#include "front/handlers/long_work.h"
#include "front/handlers/lookup.h"
#include "front/handlers/run_call.h"
#include "wire/bind.h"
#include "wire/chars.h"
#include "wire/json/print.h"
#include "wire/json/request.h"
#include "wire/predict_encode.h"
#include "wire/predict_walk.h"

namespace tensord::front {
namespace {

absl::StatusOr<PreparedCall> BindTo(Target target, tensor::PredictRequest request) {
  ASSIGN_OR_RETURN(wire::BoundCall bound, wire::Bind(request, target.definition()));
  return PreparedCall{.target = std::move(target),
                      .request = std::make_shared<tensor::PredictRequest>(std::move(request)),
                      .bound = std::move(bound),
                      .encode = {}};
}

absl::Status CheckMethod(const LoopContext& context, const Target& target) {
  if (!context.server->options->enable_signature_method_name_check) return absl::OkStatus();
  return wire::CheckPredictMethod(target.definition());
}

absl::StatusOr<PreparedCall> PrepareGrpc(const LoopContext& context, Exchange& exchange,
                                         std::span<const std::byte> message) {
  ASSIGN_OR_RETURN(wire::WalkedPredict walked, wire::WalkPredict(wire::Chars(message)));
  RETURN_IF_ERROR(Authorize(context, exchange.head(), Operation::kInfer, walked.spec.name));
  ASSIGN_OR_RETURN(Target target,
                   FindTarget(context, walked.spec, SignatureWords::kGrpc, exchange.trace()));
  RETURN_IF_ERROR(CheckMethod(context, target));
  ASSIGN_OR_RETURN(tensor::PredictRequest request, wire::DecodePredict(std::move(walked)));
  ASSIGN_OR_RETURN(PreparedCall prepared, BindTo(std::move(target), std::move(request)));
  const bool packed = context.server->options->enable_serialization_as_tensor_content;
  prepared.encode = [packed](const PreparedCall& call, const sched::CallResult& result) {
    return wire::EncodePredictResponse(AnsweredSpec(*call.target.servable, call.target.signature),
                                       NameOutputs(call, result), packed);
  };
  return prepared;
}

// JSON is only understood with the signature at hand: its numbers take their type from there.
absl::StatusOr<wire::JsonRequest> Scan(const Exchange& exchange) {
  return wire::ScanJsonRequest(wire::Chars(exchange.body()));
}

absl::StatusOr<Target> FindRestTarget(const LoopContext& context, Exchange& exchange,
                                      const wire::RestRoute& route, const wire::JsonRequest& json) {
  RETURN_IF_ERROR(Authorize(context, exchange.head(), Operation::kInfer, route.model));
  absl::StatusOr<Target> found = FindTarget(context, SpecOf(route, json.signature_name),
                                            SignatureWords::kRest, exchange.trace());
  if (!found.ok()) RETURN_IF_ERROR(wire::CheckSyntax(json));
  return found;
}

absl::StatusOr<PreparedCall> BindRest(const LoopContext& context, bool row_format, Target target,
                                      tensor::PredictRequest request) {
  RETURN_IF_ERROR(CheckMethod(context, target));
  ASSIGN_OR_RETURN(PreparedCall prepared, BindTo(std::move(target), std::move(request)));
  prepared.encode = [row_format](const PreparedCall& call, const sched::CallResult& result) {
    return wire::PrintPredictions(row_format, NameOutputs(call, result));
  };
  prepared.messages = PredictMessages;
  return prepared;
}

absl::StatusOr<PreparedCall> PrepareRest(const LoopContext& context, Exchange& exchange,
                                         const wire::RestRoute& route) {
  ASSIGN_OR_RETURN(const wire::JsonRequest json, Scan(exchange));
  ASSIGN_OR_RETURN(Target target, FindRestTarget(context, exchange, route, json));
  ASSIGN_OR_RETURN(tensor::PredictRequest request, wire::JsonTensors(json, target.definition()));
  return BindRest(context, json.row_format, std::move(target), std::move(request));
}

// The same for a large body: its two readings off the loop, the rest on it.
struct LongRequest {
  const LoopContext& context;
  std::shared_ptr<Exchange> exchange;
  wire::RestRoute route;
  absl::StatusOr<wire::JsonRequest> json = wire::JsonRequest();
  std::optional<Target> target = {};
  absl::StatusOr<tensor::PredictRequest> request = tensor::PredictRequest();

  void Finish(absl::StatusOr<PreparedCall> prepared) {
    RunRestCall(context, std::move(exchange), std::move(prepared));
  }
};

void TargetLong(const std::shared_ptr<LongRequest>& of) {
  if (!of->json.ok()) return of->Finish(of->json.status());
  absl::StatusOr<Target> target = FindRestTarget(of->context, *of->exchange, of->route, *of->json);
  if (!target.ok()) return of->Finish(target.status());
  of->target = *std::move(target);
  RunLong(
      *of->context.server, of->exchange->loop(),
      [of] { of->request = wire::JsonTensors(*of->json, of->target->definition()); },
      [of] {
        if (!of->request.ok()) return of->Finish(of->request.status());
        of->Finish(BindRest(of->context, of->json->row_format, *std::move(of->target),
                            *std::move(of->request)));
      });
}

}  // namespace

void PredictGrpc(LoopContext& context, std::shared_ptr<Exchange> exchange, const GrpcHead& head,
                 std::span<const std::byte> message) {
  absl::StatusOr<PreparedCall> prepared = PrepareGrpc(context, *exchange, message);
  RunGrpcCall(context, std::move(exchange), head, std::move(prepared));
}

void PredictRest(LoopContext& context, std::shared_ptr<Exchange> exchange,
                 const wire::RestRoute& route) {
  if (exchange->body().size() >= kLongBodyBytes) {
    loop::EventLoop& here = exchange->loop();
    auto of = std::make_shared<LongRequest>(
        LongRequest{.context = context, .exchange = std::move(exchange), .route = route});
    return RunLong(
        *context.server, here, [of] { of->json = Scan(*of->exchange); }, [of] { TargetLong(of); });
  }
  absl::StatusOr<PreparedCall> prepared = PrepareRest(context, *exchange, route);
  RunRestCall(context, std::move(exchange), std::move(prepared));
}

}  // namespace tensord::front
