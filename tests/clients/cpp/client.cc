// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// Asks a server what the end-to-end tests want to see a C++ program ask: a Predict, a failing one,
// a deadline, health. It prints one line a question and fails with the first that is answered
// wrongly. The Go client beside it does and prints the same.

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "tensord/health.grpc.pb.h"
#include "tensord/prediction_service.grpc.pb.h"

namespace {

using tensorflow::TensorProto;
using tensorflow::serving::PredictionService;
using tensorflow::serving::PredictRequest;
using tensorflow::serving::PredictResponse;
using Channel = std::shared_ptr<grpc::Channel>;

constexpr std::chrono::milliseconds kGenerous = std::chrono::seconds(60);

void SetDeadline(grpc::ClientContext* context, std::chrono::milliseconds timeout) {
  context->set_deadline(std::chrono::system_clock::now() + timeout);
}

std::pair<grpc::Status, PredictResponse> Predict(const Channel& channel, const std::string& model,
                                                 const std::string& input, TensorProto tensor,
                                                 std::chrono::milliseconds timeout) {
  PredictRequest request;
  request.mutable_model_spec()->set_name(model);
  (*request.mutable_inputs())[input] = std::move(tensor);
  grpc::ClientContext context;
  SetDeadline(&context, timeout);
  PredictResponse response;
  const grpc::Status status =
      PredictionService::NewStub(channel)->Predict(&context, request, &response);
  return {status, response};
}

TensorProto Floats(std::initializer_list<float> values) {
  TensorProto tensor;
  tensor.set_dtype(tensorflow::DT_FLOAT);
  tensor.mutable_tensor_shape()->add_dim()->set_size(static_cast<int64_t>(values.size()));
  for (const float value : values) tensor.add_float_val(value);
  return tensor;
}

std::string Words(const grpc::Status& status) {
  return std::to_string(status.error_code()) + " " + status.error_message();
}

// Each check returns what is wrong, or nothing.

std::string CheckHealth(const Channel& channel) {
  grpc::ClientContext context;
  SetDeadline(&context, kGenerous);
  grpc::health::v1::HealthCheckResponse response;
  const grpc::Status status =
      grpc::health::v1::Health::NewStub(channel)->Check(&context, {}, &response);
  if (!status.ok()) return Words(status);
  const bool serving = response.status() == grpc::health::v1::HealthCheckResponse::SERVING;
  return serving ? "" : "it is not serving";
}

std::string CheckPredict(const Channel& channel) {
  const auto [status, response] = Predict(channel, "half", "x", Floats({2, 4}), kGenerous);
  if (!status.ok()) return Words(status);
  const auto y = response.outputs().find("y");
  if (y == response.outputs().end()) return "there is no y";
  const auto& values = y->second.float_val();
  const bool right = values.size() == 2 && values[0] == 3 && values[1] == 4;
  return right ? "" : "y is " + y->second.ShortDebugString();
}

std::string CheckFailure(const Channel& channel) {
  const grpc::Status status = Predict(channel, "nobody", "x", Floats({1}), kGenerous).first;
  const bool right = status.error_code() == grpc::StatusCode::NOT_FOUND &&
                     status.error_message().find("nobody") != std::string::npos;
  return right ? "" : "want NOT_FOUND that names the model, got " + Words(status);
}

std::string CheckDeadline(const Channel& channel) {
  TensorProto sleep;
  sleep.set_dtype(tensorflow::DT_INT32);
  sleep.mutable_tensor_shape()->add_dim()->set_size(1);
  sleep.add_int_val(1000);
  const grpc::Status status =
      Predict(channel, "sleep_ms", "ms", sleep, std::chrono::milliseconds(200)).first;
  const bool right = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  return right ? "" : "want DEADLINE_EXCEEDED, got " + Words(status);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: tensord_grpc_client HOST:PORT\n";
    return 2;
  }
  const Channel channel = grpc::CreateChannel(argv[1], grpc::InsecureChannelCredentials());
  const std::initializer_list<std::pair<const char*, std::string (*)(const Channel&)>> checks = {
      {"health", CheckHealth},     {"predict", CheckPredict},       {"failure", CheckFailure},
      {"deadline", CheckDeadline}, {"predict again", CheckPredict},
  };
  for (const auto& [name, check] : checks) {
    const std::string wrong = check(channel);
    if (!wrong.empty()) {
      std::cerr << name << ": " << wrong << "\n";
      return 1;
    }
    std::cout << "ok " << name << "\n";
  }
  return 0;
}
