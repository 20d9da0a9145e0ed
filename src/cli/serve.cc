// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "base/status_macros.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/log_options.h"
#include "cli/version.h"
#include "config/check.h"
#include "config/cpu_budget.h"
#include "config/option_table.h"
#include "config/parse.h"
#include "config/text_files.h"
#include "engine/tensorflow/find_runtime.h"
#include "obs/log.h"
#include "supervisor/listen.h"
#include "supervisor/process_limits.h"
#include "supervisor/supervisor.h"

namespace tensord::cli {
namespace {

using config::ServerOptions;
using config::Style;

std::string Join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += base::Cat(text.empty() ? "" : ", ", part);
  return text;
}

// What the log says when the front takes requests. Scripts wait for the original's lines.
std::vector<std::string> ReadyLines(Style style, const ServerOptions& options,
                                    const supervisor::Listeners& listeners) {
  if (style == Style::kServe) return {base::Cat("listening: ", Join(listeners.descriptions()))};
  std::vector<std::string> lines;
  const std::string& host = options.bind_address;
  if (options.port != 0) {
    lines.push_back(base::Cat("Running gRPC ModelServer at ", host.empty() ? "0.0.0.0" : host, ":",
                              options.port, " ..."));
  }
  if (!options.grpc_socket_path.empty()) {
    lines.push_back(
        base::Cat("Running gRPC ModelServer at UNIX socket ", options.grpc_socket_path, " ..."));
  }
  if (options.rest_api_port != 0) {
    lines.push_back(base::Cat("Exporting HTTP/REST API at:", host.empty() ? "localhost" : host, ":",
                              options.rest_api_port, " ..."));
  }
  return lines;
}

supervisor::Setup MakeSetup(Style style, const ServerOptions& options,
                            const supervisor::Listeners& listeners) {
  supervisor::Setup setup;
  setup.front_descriptors = listeners.Descriptors();
  setup.drain = absl::Milliseconds(options.drain_lame_duck_ms + options.drain_timeout_ms);
  setup.ready = ReadyLines(style, options, listeners);
  std::vector<std::string> environment = supervisor::Environment();
  setup.notify_socket = supervisor::Variable(environment, "NOTIFY_SOCKET");
  std::erase_if(environment, [](const std::string& variable) {
    return variable.starts_with("NOTIFY_SOCKET=");  // Only the supervisor speaks for the service.
  });

  setup.front.path = "/proc/self/exe";
  setup.sockets = listeners.ForFront();
  setup.front.arguments = {"tensord", "front"};
  for (std::string& argument : config::ToArguments(options)) {
    setup.front.arguments.push_back(std::move(argument));
  }
  setup.front.environment = supervisor::FrontEnvironment(environment);

  setup.zygote.path = WorkerPath();
  setup.zygote.arguments = {"tensord-worker", "--zygote"};
  if (!options.tensorflow_library_dir.empty()) {
    setup.zygote.arguments.push_back(
        base::Cat("--tensorflow_library_dir=", options.tensorflow_library_dir));
  }
  setup.zygote.environment = std::move(environment);
  setup.litert_zygote = setup.zygote;
  setup.litert_zygote.arguments = {"tensord-worker", "--zygote", "--litert"};
  if (!options.litert_library_dir.empty()) {
    setup.litert_zygote.arguments.push_back(
        base::Cat("--litert_library_dir=", options.litert_library_dir));
  }
  return setup;
}

// Everything that can go wrong before a process starts, then the supervisor until its end.
absl::StatusOr<int> Run(Style style, config::CommandLine* line) {
  ServerOptions& options = line->options;
  absl::Status status = config::CheckOptions(style, &options, &line->warnings);
  if (status.ok()) status = config::CheckFiles(options, &line->warnings);
  for (std::string& warning : supervisor::LowLimits(supervisor::OwnLimits(), geteuid() == 0)) {
    line->warnings.push_back(std::move(warning));
  }
  for (const std::string& warning : line->warnings) obs::Warn("{}", warning);
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(CheckWorkerProgram());
  RETURN_IF_ERROR(
      engine::FindRuntime(engine::PlacesOfThisProcess(options.tensorflow_library_dir)).status());
  const int cpus = config::CpuBudget();
  const int loops = config::LoopCount(options, cpus);
  ASSIGN_OR_RETURN(const supervisor::Listeners listeners,
                   supervisor::Listeners::Open({.grpc_port = options.port,
                                                .rest_port = options.rest_api_port,
                                                .unix_path = options.grpc_socket_path,
                                                .admin_port = options.admin_port,
                                                .admin_address = options.admin_bind_address,
                                                .admin_unix_path = options.admin_socket_path,
                                                .bind_address = options.bind_address,
                                                .loops = loops,
                                                .listen = style == Style::kServe}));
  obs::Info("tensord {} starts (CPUs: {}, event loops: {}): {}", OwnVersion(), cpus, loops,
            Join(listeners.descriptions()));
  return supervisor::Supervise(MakeSetup(style, options, listeners));
}

// The log may be a file, and `ulimit -f` ends who writes past it, with the first line already.
void OutliveFullFiles() { signal(SIGXFSZ, SIG_IGN); }

void Print(const config::CommandLine& line) {
  std::fputs(line.out.c_str(), stdout);
  std::fflush(stdout);
  std::fputs(line.err.c_str(), stderr);
}

}  // namespace

int Serve(const Arguments& arguments) {
  OutliveFullFiles();
  config::CommandLine line = config::ParseServeStyle("tensord serve", arguments);
  Print(line);
  if (line.exit_code.has_value()) return *line.exit_code;
  if (line.options.version) {
    PrintVersions(line.options.tensorflow_library_dir);
    return 0;
  }
  obs::StartLog(LogOptionsOf(line.options, "supervisor"));
  const absl::StatusOr<int> code = Run(Style::kServe, &line);
  if (code.ok()) return *code;
  obs::Error("cannot start: {}", base::Message(code.status()));
  return 1;
}

int ServeAsOriginal(const std::string& program, const Arguments& arguments) {
  constexpr int kFailure = 255;
  OutliveFullFiles();
  config::CommandLine line = config::ParseOriginalStyle(program, arguments);
  Print(line);
  if (line.exit_code.has_value()) return *line.exit_code;
  if (line.options.version) {
    std::printf("TensorFlow ModelServer: %s (tensord)\nTensorFlow Library: %s\n",
                OwnVersion().c_str(), RuntimeVersion(line.options.tensorflow_library_dir).c_str());
    return 0;
  }
  obs::StartLog(LogOptionsOf(line.options, "supervisor"));
  const absl::StatusOr<int> code = Run(Style::kOriginal, &line);
  if (code.ok()) return *code;
  // On stdout for scripts, as the original; in the log too, where the original's parser wrote.
  std::printf("Failed to start server. Error: %s\n", code.status().ToString().c_str());
  std::fflush(stdout);
  obs::Error("cannot start: {}", base::Message(code.status()));
  return kFailure;
}

}  // namespace tensord::cli
