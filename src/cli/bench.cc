// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "base/status_macros.h"
#include "base/text.h"
#include "bench/load.h"
#include "bench/request.h"
#include "cli/commands.h"

namespace tensord::cli {
namespace {

// What the command line of `tensord bench` says.
struct BenchOptions {
  std::string host = "127.0.0.1";
  int port = 8500;
  bool rest = false;
  std::string model = "default";
  std::string signature;
  std::vector<std::string> inputs;
  std::string body_file;
  std::string path;
  int connections = 1;
  int in_flight = 1;
  double seconds = 5;
  double warm_up_seconds = 1;
  int server_pid = 0;
  bool json = false;
};

void Describe(CLI::App& app, BenchOptions* options) {
  app.add_option("--host", options->host, "IPv4 address of the server")->capture_default_str();
  app.add_option("--port", options->port, "Its port")->capture_default_str();
  app.add_flag("--rest", options->rest, "REST instead of gRPC");
  app.add_option("--model", options->model, "Model to call")->capture_default_str();
  app.add_option("--signature", options->signature,
                 "Its signature; serving_default when not given");
  app.add_option("--input", options->inputs, "An input to make: name:type:dims, x:float:1,784");
  app.add_option("--body_file", options->body_file,
                 "A file to send instead: a serialized PredictRequest, or JSON with --rest");
  app.add_option("--path", options->path, "Another path than Predict's");
  app.add_option("--connections", options->connections, "Connections")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app.add_option("--in_flight", options->in_flight, "Requests out at a time, over all connections")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--seconds", options->seconds, "How long to measure")
      ->check(CLI::Range(0.1, 86'400.0))
      ->capture_default_str();
  app.add_option("--warm_up_seconds", options->warm_up_seconds, "Load before that")
      ->check(CLI::Range(0.0, 3'600.0))
      ->capture_default_str();
  app.add_option("--server_pid", options->server_pid,
                 "Also report the CPU time of this process and its children");
  app.add_flag("--json", options->json, "One JSON object instead of text");
}

absl::StatusOr<std::string> MakeBody(const BenchOptions& options) {
  if (!options.body_file.empty()) {
    std::ifstream file(options.body_file, std::ios::binary);
    if (!file) return absl::NotFoundError(base::Cat("cannot read ", options.body_file));
    std::ostringstream bytes;
    bytes << file.rdbuf();
    return std::move(bytes).str();
  }
  std::vector<bench::MadeInput> inputs;
  for (const std::string& text : options.inputs) {
    ASSIGN_OR_RETURN(bench::MadeInput input, bench::ParseInput(text));
    inputs.push_back(std::move(input));
  }
  if (inputs.empty()) {
    return absl::InvalidArgumentError(
        "nothing to send: give --input name:type:dims for each input, or --body_file");
  }
  return options.rest ? bench::MakePredictJson(options.signature, inputs)
                      : bench::MakePredictRequest(options.model, options.signature, inputs);
}

absl::StatusOr<bench::LoadPlan> MakePlan(const BenchOptions& options) {
  bench::LoadPlan plan;
  plan.target.host = options.host;
  plan.target.port = options.port;
  plan.target.path = options.path;
  if (plan.target.path.empty()) {
    plan.target.path = options.rest ? base::Cat("/v1/models/", options.model, ":predict")
                                    : "/tensorflow.serving.PredictionService/Predict";
  }
  ASSIGN_OR_RETURN(plan.target.body, MakeBody(options));
  plan.rest = options.rest;
  plan.connections = options.connections;
  plan.in_flight = options.in_flight;
  plan.duration = absl::Seconds(options.seconds);
  plan.warm_up = absl::Seconds(options.warm_up_seconds);
  plan.server_pid = options.server_pid;
  return plan;
}

absl::Status RunBench(const BenchOptions& options) {
  ASSIGN_OR_RETURN(const bench::LoadPlan plan, MakePlan(options));
  bench::Progress progress = [](absl::Duration passed, uint64_t answered) {
    std::fprintf(stderr, "\r%4.0f s  %llu answered", absl::ToDoubleSeconds(passed),
                 static_cast<unsigned long long>(answered));
  };
  if (options.json) progress = nullptr;
  ASSIGN_OR_RETURN(const bench::LoadResult result, bench::RunLoad(plan, std::move(progress)));
  if (!options.json) std::fputc('\n', stderr);
  const std::string report =
      options.json ? bench::JsonReport(plan, result) : bench::TextReport(plan, result);
  std::fputs(report.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

int Bench(const Arguments& arguments) {
  CLI::App app("Closed-loop load on a TensorFlow Serving server, with its latencies",
               "tensord bench");
  BenchOptions options;
  Describe(app, &options);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const absl::Status status = RunBench(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "tensord bench: %s\n", std::string(base::Message(status)).c_str());
  return 1;
}

}  // namespace tensord::cli
