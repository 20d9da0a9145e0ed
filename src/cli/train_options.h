// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace CLI {  // NOLINT(readability-identifier-naming): a library's.
class App;
}

namespace tensord::cli {

inline constexpr int kMeetingPort = 29400;  // As torchrun's.

// What the command line of `tensord train` says.
struct TrainOptions {
  bool standalone = false;
  std::string nodes;
  std::string ranks = "1";
  std::string mode = "mwms";
  int servers = 1;
  std::string meeting;
  int node_rank = -1;
  std::string address;
  std::string token_file;
  std::string hosts;
  std::string ssh_config;
  bool from_ssh = false;
  std::string tls_cert, tls_key, tls_ca;
  std::string yield_to;
  double yield_queue = 8;
  double yield_p99_ms = 0;
  std::string run_id;
  int max_restarts = 0;
  std::string restart_on = "any";
  std::string success = "all";
  double grace = 10;
  double join_timeout = 600;
  double start_timeout = 600;
  double hang_timeout = 600;
  bool start_timeout_given = false;
  bool hang_timeout_given = false;
  double stopped_timeout = 10;
  double heartbeat = 10;
  double healthy_after = 600;
  std::string log_dir;
  std::string checkpoint_dir;
  std::string export_dir;
  std::string publish;
  bool isolate = false;
  bool no_pin = false;
  bool no_inject = false;
  bool check = false;
  bool print_env = false;
};

// For RUN_ID and the logs.
std::string NewRunId();

// Names each option, once.
void Describe(CLI::App& app, TrainOptions* options);

struct NodeRange {
  int min = 1;
  int max = 1;
};
// "4" or "2:4"; "" is one.
absl::StatusOr<NodeRange> ParseNodes(std::string_view text);

}  // namespace tensord::cli
