// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <grpcpp/grpcpp.h>

#include <climits>
#include <memory>
#include <thread>
#include <vector>

#include "base/text.h"
#include "servers.h"
#include "tensord/prediction_service.grpc.pb.h"

namespace tensord::peers {
namespace {

using tensorflow::serving::PredictionService;
using tensorflow::serving::PredictRequest;
using tensorflow::serving::PredictResponse;

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(status.raw_code()), std::string(base::Message(status))};
}

class SyncService final : public PredictionService::Service {
 public:
  explicit SyncService(const Runners& runners) : runners_(runners) {}
  grpc::Status Predict(grpc::ServerContext*, const PredictRequest* request,
                       PredictResponse* response) override {
    return ToGrpc(peers::Predict(runners_, *request, response));
  }

 private:
  const Runners& runners_;
};

void Listen(grpc::ServerBuilder* builder, int port, int* bound) {
  builder->AddListeningPort(base::Cat("127.0.0.1:", port), grpc::InsecureServerCredentials(),
                            bound);
  builder->SetMaxReceiveMessageSize(INT_MAX);
  builder->SetMaxSendMessageSize(INT_MAX);
}

// One Predict on its way through a completion queue; asks for the next when it gets its own.
class QueuedCall {
 public:
  QueuedCall(PredictionService::AsyncService* service, grpc::ServerCompletionQueue* queue,
             const Runners& runners)
      : service_(service), queue_(queue), runners_(runners), responder_(&context_) {
    service_->RequestPredict(&context_, &request_, &responder_, queue_, queue_, this);
  }

  // The queue returned this call. It deletes itself when it is over.
  void Proceed(bool ok) {
    if (!ok || answered_) {
      delete this;
      return;
    }
    new QueuedCall(service_, queue_, runners_);
    answered_ = true;
    const absl::Status status = peers::Predict(runners_, request_, &response_);
    responder_.Finish(response_, ToGrpc(status), this);
  }

 private:
  PredictionService::AsyncService* const service_;
  grpc::ServerCompletionQueue* const queue_;
  const Runners& runners_;
  grpc::ServerContext context_;
  PredictRequest request_;
  PredictResponse response_;
  grpc::ServerAsyncResponseWriter<PredictResponse> responder_;
  bool answered_ = false;
};

void ServeQueue(grpc::ServerCompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) static_cast<QueuedCall*>(tag)->Proceed(ok);
}

}  // namespace

bool ServeGrpcSync(const Runners& runners, int port) {
  SyncService service(runners);
  grpc::ServerBuilder builder;
  int bound = 0;
  Listen(&builder, port, &bound);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || bound == 0) return false;
  SayListening(bound);
  server->Wait();
  return true;
}

bool ServeGrpcQueues(const Runners& runners, int port, int threads) {
  // Calls that are asked for in advance, a queue: more than the benchmarks have in flight.
  constexpr int kCallsWaiting = 128;
  PredictionService::AsyncService service;
  grpc::ServerBuilder builder;
  int bound = 0;
  Listen(&builder, port, &bound);
  builder.RegisterService(&service);
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues;
  for (int i = 0; i < threads; ++i) queues.push_back(builder.AddCompletionQueue());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || bound == 0) return false;
  std::vector<std::thread> pool;
  for (const auto& queue : queues) {
    for (int i = 0; i < kCallsWaiting; ++i) new QueuedCall(&service, queue.get(), runners);
    pool.emplace_back([&queue] { ServeQueue(queue.get()); });
  }
  SayListening(bound);
  for (std::thread& thread : pool) thread.join();
  return true;
}

}  // namespace tensord::peers
