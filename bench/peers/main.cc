// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// A peer to measure tensord against: see servers.h.
//
//   peer_server KIND RUNTIME_DIR PORT THREADS BATCH_ROWS BATCH_MICROSECONDS NAME=VERSION_DIR...
//
// KIND is grpc_sync, grpc_queues or evhttp; THREADS counts the queues or the pool's threads (of no
// meaning for grpc_sync, whose pool follows the load); BATCH_ROWS 0 means no batcher.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "base/status_macros.h"
#include "base/text.h"
#include "batcher.h"
#include "servers.h"

namespace tensord::peers {
namespace {

constexpr int kFirstModel = 7;

absl::StatusOr<Runners> LoadAll(engine::Engine& engine, int argc, char** argv) {
  Runners runners;
  const BatcherOptions options{.rows_max = std::atoll(argv[5]),
                               .timeout_microseconds = std::atoll(argv[6])};
  for (int i = kFirstModel; i < argc; ++i) {
    const std::string_view word = argv[i];
    const size_t equals = word.find('=');
    if (equals == word.npos) {
      return absl::InvalidArgumentError(base::Cat("'", word, "' is not NAME=VERSION_DIR"));
    }
    ASSIGN_OR_RETURN(std::unique_ptr<Runner> runner,
                     LoadRunner(engine, std::string(word.substr(equals + 1))));
    if (options.rows_max > 0) runner = std::make_unique<Batcher>(std::move(runner), options);
    runners[std::string(word.substr(0, equals))] = std::move(runner);
  }
  return runners;
}

bool Serve(std::string_view kind, const Runners& runners, int port, int threads) {
  if (kind == "grpc_sync") return ServeGrpcSync(runners, port);
  if (kind == "grpc_queues") return ServeGrpcQueues(runners, port, threads);
  if (kind == "evhttp") return ServeEvhttp(runners, port, threads);
  return false;
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", std::string(base::Message(status)).c_str());
  return 1;
}

int Main(int argc, char** argv) {
  const auto runtime = engine::Runtime::Open(argv[2], engine::SymbolScope::kLocal);
  if (!runtime.ok()) return Fail(runtime.status());
  engine::TensorFlowEngine engine(&*runtime);
  const absl::StatusOr<Runners> runners = LoadAll(engine, argc, argv);
  if (!runners.ok()) return Fail(runners.status());
  if (!Serve(argv[1], *runners, std::atoi(argv[3]), std::atoi(argv[4]))) {
    std::fprintf(stderr, "%s cannot listen on port %s\n", argv[1], argv[3]);
    return 1;
  }
  return 0;
}

}  // namespace

void SayListening(int port) {
  std::printf("listening %d\n", port);
  std::fflush(stdout);
}

}  // namespace tensord::peers

int main(int argc, char** argv) {
  if (argc <= tensord::peers::kFirstModel) {
    std::fprintf(stderr,
                 "usage: peer_server KIND RUNTIME_DIR PORT THREADS BATCH_ROWS BATCH_MICROSECONDS "
                 "NAME=VERSION_DIR...\n");
    return 2;
  }
  _exit(tensord::peers::Main(argc, argv));  // As engine_loop: no static destructors.
}
