// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/router.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "front/grpc.h"
#include "front/handlers/account.h"
#include "front/handlers/authorize.h"
#include "front/handlers/client.h"
#include "front/handlers/criticality.h"
#include "front/handlers/health.h"
#include "front/handlers/inference.h"
#include "front/handlers/lookup.h"
#include "front/handlers/models.h"
#include "front/handlers/oip.h"
#include "front/handlers/oip_models.h"
#include "front/handlers/oip_statistics.h"
#include "front/handlers/predict.h"
#include "front/handlers/probes.h"
#include "front/handlers/reflection.h"
#include "front/handlers/reply.h"
#include "front/handlers/run_call.h"
#include "wire/chars.h"
#include "wire/oip/route.h"
#include "wire/predict_walk.h"
#include "wire/rest_route.h"

namespace tensord::front {
namespace {

using Message = std::span<const std::byte>;
using obs::Method;
using GrpcHandler = void (*)(LoopContext&, std::shared_ptr<Exchange>, const GrpcHead&, Message);

using GrpcEndHandler = void (*)(LoopContext&, std::shared_ptr<Exchange>);

struct GrpcMethod {
  std::string_view service;
  std::string_view method;
  Method kind;
  GrpcHandler handler;
  GrpcEndHandler end = nullptr;  // Of the client's messages. Only streams have one.
};

constexpr std::string_view kOipService = "inference.GRPCInferenceService";

constexpr std::string_view kPredictionService = "tensorflow.serving.PredictionService";

constexpr std::array kGrpcMethods = {
    GrpcMethod{"tensorflow.serving.PredictionService", "Predict", Method::kPredict, PredictGrpc},
    GrpcMethod{"tensorflow.serving.PredictionService", "Classify", Method::kClassify, ClassifyGrpc},
    GrpcMethod{"tensorflow.serving.PredictionService", "Regress", Method::kRegress, RegressGrpc},
    GrpcMethod{"tensorflow.serving.PredictionService", "MultiInference", Method::kMultiInference,
               MultiInferenceGrpc},
    GrpcMethod{"tensorflow.serving.PredictionService", "GetModelMetadata",
               Method::kGetModelMetadata, MetadataGrpc},
    GrpcMethod{"tensorflow.serving.ModelService", "GetModelStatus", Method::kGetModelStatus,
               StatusGrpc},
    GrpcMethod{"tensorflow.serving.ModelService", "HandleReloadConfigRequest", Method::kReload,
               ReloadGrpc},
    GrpcMethod{kOipService, "ModelInfer", Method::kPredict, OipInferGrpc},
    GrpcMethod{kOipService, "ModelMetadata", Method::kGetModelMetadata, OipModelGrpc},
    GrpcMethod{kOipService, "ServerMetadata", Method::kGetModelMetadata, OipServerGrpc},
    GrpcMethod{kOipService, "ServerLive", Method::kProbe, OipLiveGrpc},
    GrpcMethod{kOipService, "ServerReady", Method::kProbe, OipReadyGrpc},
    GrpcMethod{kOipService, "ModelReady", Method::kProbe, OipModelReadyGrpc},
    GrpcMethod{kOipService, "ModelConfig", Method::kGetModelMetadata, OipConfigGrpc},
    GrpcMethod{kOipService, "ModelStatistics", Method::kGetModelMetadata, OipStatisticsGrpc},
    GrpcMethod{kOipService, "RepositoryIndex", Method::kReload, OipIndexGrpc},
    GrpcMethod{kOipService, "RepositoryModelLoad", Method::kReload, OipLoadGrpc},
    GrpcMethod{kOipService, "RepositoryModelUnload", Method::kReload, OipUnloadGrpc},
    GrpcMethod{"grpc.health.v1.Health", "Check", Method::kProbe, HealthCheckGrpc},
    GrpcMethod{"grpc.health.v1.Health", "List", Method::kProbe, HealthListGrpc},
    GrpcMethod{"grpc.health.v1.Health", "Watch", Method::kProbe, HealthWatchGrpc, HealthWatchEnd},
    GrpcMethod{"grpc.reflection.v1.ServerReflection", "ServerReflectionInfo", Method::kProbe,
               ReflectionGrpc, ReflectionEnd},
    GrpcMethod{"grpc.reflection.v1alpha.ServerReflection", "ServerReflectionInfo", Method::kProbe,
               ReflectionGrpc, ReflectionEnd},
};

const GrpcMethod* FindMethod(const GrpcHead& head) {
  for (const GrpcMethod& row : kGrpcMethods) {
    if (row.method == head.method && row.service == head.service) return &row;
  }
  return nullptr;
}

// What the original serves under --enable_profiler: it would need a socket inside the worker, which
// its sandbox denies, and the runtime's C API starts a profiler for the process that calls it only.
constexpr std::string_view kProfilerService = "tensorflow.ProfilerService";

// Of Triton's extensions, the methods whose clients can do otherwise.
constexpr std::pair<std::string_view, std::string_view> kOipUnserved[] = {
    {"ModelStreamInfer", "streams of inference are not served; call ModelInfer for each request"},
    {"SystemSharedMemory", "shared memory is not served; send and take the tensors' values"},
    {"CudaSharedMemory", "shared memory is not served; send and take the tensors' values"},
};

absl::Status NoSuchMethod(const GrpcHead& head) {
  for (const auto& [start, words] : kOipUnserved) {
    if (head.service == kOipService && head.method.starts_with(start)) {
      return absl::UnimplementedError(base::Cat(words));
    }
  }
  if (head.service == kProfilerService) {
    return absl::UnimplementedError(
        "ProfilerService is not served: models run in sandboxed workers without sockets. "
        "Profile the model with tf.profiler.experimental in Python, or read the stages in "
        "this server's metrics");
  }
  return absl::UnimplementedError(
      base::Cat("this server has no method ", head.service, "/", head.method));
}

std::string NothingThere(std::string_view path, std::string_view metrics_path) {
  const std::string start = base::Cat("Nothing is served at ", path);
  if (!path.ends_with("metrics"))
    return base::Cat(start, "; models are under /v1/models/NAME and /v2/models/NAME\n");
  if (!metrics_path.empty()) return base::Cat(start, "; the metrics are at ", metrics_path, "\n");
  return base::Cat(start,
                   "; metrics are off: --monitoring_config_file=FILE, with prometheus_config { "
                   "enable: true } in the file, turns them on\n");
}

Method MethodOf(wire::RestKind kind) {
  switch (kind) {
    case wire::RestKind::kPredict:
      return Method::kPredict;
    case wire::RestKind::kClassify:
      return Method::kClassify;
    case wire::RestKind::kRegress:
      return Method::kRegress;
    case wire::RestKind::kStatus:
    case wire::RestKind::kList:
      return Method::kGetModelStatus;
    case wire::RestKind::kMetadata:
      return Method::kGetModelMetadata;
    case wire::RestKind::kPreflight:
      return Method::kPreflight;
    case wire::RestKind::kBad:
    case wire::RestKind::kOutside:
      break;
  }
  return Method::kOther;
}

Method MethodOf(wire::OipKind kind) {
  switch (kind) {
    case wire::OipKind::kInfer:
      return Method::kPredict;
    case wire::OipKind::kServer:
    case wire::OipKind::kModel:
    case wire::OipKind::kConfig:
    case wire::OipKind::kStatistics:
      return Method::kGetModelMetadata;
    case wire::OipKind::kLive:
    case wire::OipKind::kReady:
    case wire::OipKind::kModelReady:
      return Method::kProbe;
    case wire::OipKind::kIndex:
    case wire::OipKind::kLoad:
    case wire::OipKind::kUnload:
      return Method::kReload;
    case wire::OipKind::kPreflight:
      return Method::kPreflight;
    case wire::OipKind::kBad:
    case wire::OipKind::kOutside:
      break;
  }
  return Method::kOther;
}

// Below this the body comes with the head.
constexpr uint64_t kEarlyBytesMin = 4096;
// A smaller tensor's copy costs less than the care for its place.
constexpr uint64_t kInPlaceBytesMin = uint64_t{64} << 10;
constexpr size_t kTensorAlignment = 64;  // What the runtime asks for.

// As the head announces it; 0 when it does not.
uint64_t BodyBytes(const RequestHead& head) {
  const std::string_view text = head.Find("content-length").value_or("");
  uint64_t bytes = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), bytes);
  return end.ec == std::errc() ? bytes : 0;
}

// The model that a REST call wants to run, by its URL; nullopt when it wants something else.
std::optional<tensor::ModelSpec> InferredModel(const RequestHead& head) {
  const wire::OipRoute oip = wire::ParseOipRoute(head.method, head.target);
  if (oip.kind == wire::OipKind::kInfer) {
    return tensor::ModelSpec{
        .name = oip.model, .version = oip.version, .version_label = {}, .signature_name = {}};
  }
  const wire::RestRoute route = wire::ParseRestRoute(head.method, head.target);
  const bool infers = route.kind == wire::RestKind::kPredict ||
                      route.kind == wire::RestKind::kClassify ||
                      route.kind == wire::RestKind::kRegress;
  if (!infers) return std::nullopt;
  return SpecOf(route, {});
}

Method MethodOfTarget(const RequestHead& head) {
  const wire::OipRoute oip = wire::ParseOipRoute(head.method, head.target);
  if (oip.kind != wire::OipKind::kOutside) return MethodOf(oip.kind);
  return MethodOf(wire::ParseRestRoute(head.method, head.target).kind);
}

std::string_view PathOf(std::string_view target) { return target.substr(0, target.find('?')); }

}  // namespace

Router::Router(ServerContext* server, loop::EventLoop* loop) {
  context_.server = server;
  context_.loop = loop;
  context_.watchers = &watchers_;
  context_.snapshot = std::make_shared<models::Snapshot>();
}

void Router::OnHead(Exchange& exchange) {
  const absl::Status criticality = CriticalityOf(exchange.head()).status();
  if (!IsGrpc(exchange.head())) {
    if (!criticality.ok()) return ReplyJsonError(exchange, criticality, cors());
    return OnRestHead(exchange);
  }
  exchange.trace().grpc = true;
  if (!exchange.head().grpc_port) {
    return ReplyGrpc(exchange, absl::UnimplementedError(
                                   "this is the REST port; gRPC is served on the port of --port"));
  }
  const absl::StatusOr<GrpcHead> head = ParseGrpcHead(exchange.head());
  if (!head.ok()) return ReplyGrpc(exchange, head.status());
  exchange.trace().deadline = head->deadline;
  const GrpcMethod* const method = FindMethod(*head);
  if (method != nullptr) exchange.trace().method = method->kind;
  if (!criticality.ok()) return ReplyGrpc(exchange, criticality);
  if (method == nullptr) return ReplyGrpc(exchange, NoSuchMethod(*head));
  if (method->kind == Method::kProbe) {
    const absl::Status allowed = Authorize(context_, exchange.head(), Operation::kProbe, {});
    if (!allowed.ok()) return ReplyGrpc(exchange, allowed);
  } else {
    const absl::Status allowed = AuthorizeCaller(context_, exchange.head());
    if (!allowed.ok()) return ReplyGrpc(exchange, allowed);
  }
  if (method->end != nullptr) exchange.BeginStream();
}

void Router::OnRestHead(Exchange& exchange) {
  // A GET may be a probe, and has no body that costs anything.
  if (exchange.head().method != "POST") return;
  const absl::Status allowed = AuthorizeCaller(context_, exchange.head());
  if (!allowed.ok()) return ReplyJsonError(exchange, allowed, cors());
  RefuseRestEarly(exchange);
}

// A REST call's URL names its model, and its head the body's size: what the scheduler would refuse
// for lack of room or time is refused before the body is read. With several loops, only where the
// model is at home on this one.
void Router::RefuseRestEarly(Exchange& exchange) {
  const RequestHead& head = exchange.head();
  const uint64_t bytes = BodyBytes(head);
  if (bytes < kEarlyBytesMin) return;
  const std::optional<tensor::ModelSpec> spec = InferredModel(head);
  // Other errors are found, and said, when the body is there.
  if (!spec || !Permits(context_, head, Operation::kInfer, spec->name)) return;
  sched::VersionQueue* const queue = QueueHere(exchange, *spec);
  if (queue == nullptr) return;
  const std::optional<sched::CallResult> refusal = RefusalBefore(
      head, queue, {.bytes = bytes, .deadline = RestDeadline(context_, head.arrived)});
  if (!refusal.has_value()) return;
  exchange.trace().method = MethodOfTarget(head);
  ReplyJsonError(exchange, refusal->status, cors(), refusal->retry_after);
}

// The same for a large gRPC message, whose first field names the model. One that stays, and whose
// tensor the worker can read where it arrives, is received there.
void Router::OnBodyBegin(Exchange& exchange, std::span<const std::byte> begin, uint64_t bytes) {
  const RequestHead& head = exchange.head();
  const Method method = exchange.trace().method;
  const bool infers =
      method == Method::kPredict || method == Method::kClassify || method == Method::kRegress;
  if (!infers) return;
  const std::optional<tensor::ModelSpec> spec =
      wire::PeekModelSpec(wire::Chars(begin.subspan(kGrpcPrefixBytes)));
  if (!spec.has_value() || !Permits(context_, head, Operation::kInfer, spec->name)) return;
  const absl::StatusOr<GrpcHead> grpc = ParseGrpcHead(head);
  if (!grpc.ok() || grpc->service != kPredictionService) return;  // Other messages are other bytes.
  sched::VersionQueue* const queue = QueueHere(exchange, *spec);
  if (queue == nullptr) return;
  const std::optional<sched::CallResult> refusal = RefusalBefore(
      head, queue,
      {.bytes = bytes,
       .retry = grpc->previous_attempts > 0,
       .deadline = std::min(grpc->deadline, head.arrived + limits::kDeadlineDefault)});
  if (refusal.has_value()) {
    return ReplyGrpc(exchange, refusal->status, {}, refusal->retry_after);
  }
  if (method == Method::kPredict) ReceiveInPlace(exchange, queue, begin, bytes);
}

// Has the body received in memory that the model's worker reads, with its large tensor at a
// multiple of 64, where the runtime takes it without a copy.
void Router::ReceiveInPlace(Exchange& exchange, sched::VersionQueue* queue,
                            std::span<const std::byte> begin, uint64_t bytes) {
  const std::optional<wire::ContentPlace> content =
      wire::PeekContent(wire::Chars(begin.subspan(kGrpcPrefixBytes)), kInPlaceBytesMin);
  if (!content.has_value()) return;
  const size_t before = (kGrpcPrefixBytes + content->offset) % kTensorAlignment;
  const size_t gap = (kTensorAlignment - before) % kTensorAlignment;
  const fleet::ReceivePlace place = queue->LeaseForReceive(gap + bytes);
  if (!place.memory.empty()) exchange.ReceiveInto(place.memory.subspan(gap), place.lease);
}

// The queue of the version that a call is for; null when it is not on this loop.
sched::VersionQueue* Router::QueueHere(Exchange& exchange, const tensor::ModelSpec& spec) const {
  const auto servable = FindServable(context_, spec, exchange.trace());
  if (!servable.ok() || (*servable)->home != context_.loop) return nullptr;
  return (*servable)->queue;
}

// What the queue of the model says to a call whose body is still on its way. Other errors are
// found, and said, when it is there.
std::optional<sched::CallResult> Router::RefusalBefore(const RequestHead& head,
                                                       sched::VersionQueue* queue,
                                                       sched::EarlyCall call) {
  call.criticality = CriticalityOf(head).value_or(tensor::Criticality::kCritical);
  call.client = ClientOf(head, context_.server->options->client_identity_header);
  call.arrived = head.arrived;
  return queue->RefuseEarly(call);
}

void Router::SetSnapshot(std::shared_ptr<const models::Snapshot> snapshot) {
  context_.snapshot = std::move(snapshot);
  watchers_.Update(context_);
}

void Router::EndStreams() {
  watchers_.End(absl::UnavailableError("the server is going away; connect anew"));
}

void Router::OnMessage(std::shared_ptr<Exchange> exchange) {
  const absl::StatusOr<GrpcHead> head = ParseGrpcHead(exchange->head());
  const absl::StatusOr<Message> message = ReadGrpcMessage(exchange->body());
  if (!message.ok()) return exchange->Send(MakeGrpcEnd(message.status()));
  // OnHead let none but known methods through.
  FindMethod(*head)->handler(context_, std::move(exchange), *head, *message);
}

void Router::OnMessagesEnd(std::shared_ptr<Exchange> exchange) {
  const absl::StatusOr<GrpcHead> head = ParseGrpcHead(exchange->head());
  FindMethod(*head)->end(context_, std::move(exchange));
}

void Router::OnRequest(std::shared_ptr<Exchange> exchange) {
  if (exchange->trace().grpc) {
    OnGrpc(std::move(exchange));
  } else {
    OnHttp(std::move(exchange));
  }
}

void Router::OnDone(const Ending& ending) { Account(context_, ending); }

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
  const std::string& metrics_path = context_.server->metrics_path;
  const bool metrics = !metrics_path.empty() && path == metrics_path;
  if (path == "/livez" || path == "/readyz" || metrics) {
    exchange->trace().method = Method::kProbe;
    const absl::Status allowed = Authorize(context_, head, Operation::kProbe, {});
    if (!allowed.ok()) return ReplyJsonError(*exchange, allowed, cors());
  }
  if (path == "/livez") return LiveProbe(*exchange);
  if (path == "/readyz") return ReadyProbe(context_, *exchange);
  if (metrics) {
    if (path != head.target) {
      return ReplyText(*exchange, 400, base::Cat("Unexpected path: ", head.target, "\n"));
    }
    return context_.server->metrics_page(std::move(exchange));
  }
  OnRest(std::move(exchange));
}

void Router::OnRest(std::shared_ptr<Exchange> exchange) {
  const RequestHead& head = exchange->head();
  const wire::OipRoute oip = wire::ParseOipRoute(head.method, head.target);
  if (oip.kind != wire::OipKind::kOutside) {
    exchange->trace().method = MethodOf(oip.kind);
    exchange->trace().model = oip.model;
    return OipRest(context_, std::move(exchange), oip);
  }
  const wire::RestRoute route = wire::ParseRestRoute(head.method, head.target);
  exchange->trace().method = MethodOf(route.kind);
  exchange->trace().model = route.model;
  switch (route.kind) {
    case wire::RestKind::kPredict:
      return PredictRest(context_, std::move(exchange), route);
    case wire::RestKind::kList:
      return ListRest(context_, *exchange);
    case wire::RestKind::kStatus:
      return StatusRest(context_, *exchange, route);
    case wire::RestKind::kMetadata:
      return MetadataRest(context_, *exchange, route);
    case wire::RestKind::kPreflight:
      return Preflight(*exchange, cors());
    case wire::RestKind::kClassify:
    case wire::RestKind::kRegress:
      return InferenceRest(context_, std::move(exchange), route);
    case wire::RestKind::kBad:
      return ReplyJsonError(*exchange, route.error, cors());
    case wire::RestKind::kOutside:
      return ReplyText(*exchange, 404,
                       NothingThere(PathOf(head.target), context_.server->metrics_path));
  }
}

}  // namespace tensord::front
