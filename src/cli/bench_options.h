// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tensord::cli {

// What the command line of `tensord bench` says. One table (bench_options.cc) reads it and makes
// --help.
struct BenchOptions {
  // The server.
  std::string host = "127.0.0.1";
  int64_t port = 8500;
  bool rest = false;
  bool oip = false;
  bool tls = false;
  std::string ca;

  // What is sent.
  std::vector<std::string> model = {};
  std::string signature;
  std::vector<std::string> input;
  int64_t rows = 1;
  std::string body_file;
  std::string path;
  std::vector<std::string> request;
  std::string mix;
  double zipf = 0;
  double deadline_ms = 0;
  std::string criticality;
  std::vector<std::string> header;
  bool try_first = true;

  // How.
  int64_t connections = 0;
  int64_t in_flight = 0;
  double rate = 0;
  std::string pacing = "poisson";
  std::vector<std::string> rates;
  bool overload = false;
  std::vector<std::string> factors = {"0.5", "1", "2", "5", "10", "0.5"};
  int64_t in_flight_max = 100'000;
  int64_t threads = 1;
  bool one_shot = false;
  double seconds = 5;
  int64_t requests = 0;
  double warm_up_seconds = 1;
  int64_t seed = 1;

  // What comes out.
  std::vector<std::string> server_pid;
  std::string json;  // A file; "-": stdout, in place of the text.
  double max_failed_percent = -1;
};

// INVALID_ARGUMENT names the option, what it takes and what came. REQUIRES: no --help among them.
absl::StatusOr<BenchOptions> ParseBenchOptions(const std::vector<std::string>& arguments);

// The text of --help.
std::string BenchHelp();

}  // namespace tensord::cli
