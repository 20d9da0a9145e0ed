// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "config/check.h"

#include <arpa/inet.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "config/channel_arguments.h"
#include "config/option_table.h"

namespace tensord::config {
namespace {

absl::Status CheckAsTheOriginal(const ServerOptions& options) {
  if (options.port == 0 && options.grpc_socket_path.empty()) {
    return absl::InvalidArgumentError(
        "At least one of server_options.grpc_port or server_options.grpc_socket_path must be set.");
  }
  if (options.use_alts_credentials && !options.ssl_config_file.empty()) {
    return absl::InvalidArgumentError(
        "Either use_alts_credentials must be false or ssl_config_file must be empty.");
  }
  if (options.model_base_path.empty() && options.model_config_file.empty()) {
    return absl::InvalidArgumentError(
        "Both server_options.model_base_path and server_options.model_config_file are empty!");
  }
  return absl::OkStatus();
}

absl::Status CheckRefused(const ServerOptions& options) {
  for (const Option& option : OptionTable()) {
    if (option.state != OptionState::kRefused || IsDefault(option, options)) continue;
    return absl::InvalidArgumentError(base::Cat("--", option.name, "=", ValueText(option, options),
                                                " is refused: ", option.note));
  }
  return absl::OkStatus();
}

struct Range {
  std::string_view option;
  int64_t value;
  int64_t min;
  int64_t max;
};

absl::Status CheckRanges(const ServerOptions& options) {
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  constexpr int64_t kThreadsMax = 65536;  // Far above any machine; guards int conversions.
  const Range ranges[] = {
      {"port", options.port, 0, 65535},
      {"rest_api_port", options.rest_api_port, 0, 65535},
      {"admin_port", options.admin_port, 0, 65535},
      {"max_num_load_retries", options.max_num_load_retries, 0, kAny},
      {"tensorflow_session_parallelism", options.tensorflow_session_parallelism, 0, kThreadsMax},
      {"tensorflow_intra_op_parallelism", options.tensorflow_intra_op_parallelism, 0, kThreadsMax},
      {"tensorflow_inter_op_parallelism", options.tensorflow_inter_op_parallelism, 0, kThreadsMax},
      {"drain_timeout_ms", options.drain_timeout_ms, 0, limits::kDrainMillisecondsMax},
      {"drain_lame_duck_ms", options.drain_lame_duck_ms, 0, limits::kDrainMillisecondsMax},
      {"loops", options.loops, 0, limits::kLoopsMax},
      // The last user id that is neither "none" nor past 32 bits, less room for the workers.
      {"worker_user_base", options.worker_user_base, 0, 4'294'900'000},
      {"memory_limit_bytes", options.memory_limit_bytes, 0, kAny},
      {"request_bytes_budget", options.request_bytes_budget, 0, kAny},
  };
  for (const Range& range : ranges) {
    if (range.value >= range.min && range.value <= range.max) continue;
    const std::string bound = range.max == kAny ? base::Cat("at least ", range.min)
                                                : base::Cat("from ", range.min, " to ", range.max);
    return absl::InvalidArgumentError(
        base::Cat("--", range.option, " must be ", bound, ", not ", range.value));
  }
  if (const float fraction = options.per_process_gpu_memory_fraction;
      !std::isfinite(fraction) || fraction < 0) {
    return absl::InvalidArgumentError(base::Cat(
        "--per_process_gpu_memory_fraction must be a number from 0 (all) to 1, not ", fraction));
  }
  return absl::OkStatus();
}

// With less than these, the server starts and then refuses everything that it is asked.
absl::Status CheckBudgets(const ServerOptions& options) {
  // One call holds its headers, body and answer at once, and so do the probes beside it.
  constexpr int64_t kRequestBytesMin = 1 << 20;
  constexpr auto kMemoryMin = static_cast<int64_t>(limits::kWorkerBaseBytes);
  if (options.memory_limit_bytes != 0 && options.memory_limit_bytes < kMemoryMin) {
    return absl::InvalidArgumentError(
        base::Cat("--memory_limit_bytes must be at least ", kMemoryMin,
                  ", what one worker takes without its model, or 0 for the machine's, not ",
                  options.memory_limit_bytes));
  }
  if (options.request_bytes_budget != 0 && options.request_bytes_budget < kRequestBytesMin) {
    return absl::InvalidArgumentError(
        base::Cat("--request_bytes_budget must be at least ", kRequestBytesMin,
                  ", room for a few small calls, or 0 for a quarter of the memory limit, not ",
                  options.request_bytes_budget));
  }
  return absl::OkStatus();
}

bool IsAddress(const std::string& text) {
  in6_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

absl::Status CheckNetwork(Style style, ServerOptions* options, std::vector<std::string>* warnings) {
  RETURN_IF_ERROR(ParseChannelArguments(options->grpc_channel_arguments, warnings).status());
  if (!options->bind_address.empty() && !IsAddress(options->bind_address)) {
    return absl::InvalidArgumentError(
        base::Cat("--bind_address takes an IPv4 or IPv6 address such as 127.0.0.1 or ::, not \"",
                  options->bind_address, "\""));
  }
  if (options->rest_api_port != 0 && options->rest_api_port == options->port &&
      style == Style::kOriginal) {
    warnings->push_back(
        "server_options.http_port cannot be same as grpc_port. Please use a different port for "
        "HTTP/REST API. Skipped exporting HTTP/REST API.");
    options->rest_api_port = 0;
  }
  if (!options->monitoring_config_file.empty() && options->rest_api_port == 0) {
    warnings->push_back(
        "--monitoring_config_file has no effect without --rest_api_port, which serves the metrics");
  }
  return absl::OkStatus();
}

// An admin listener that others reach must be able to tell who calls.
absl::Status CheckAdmin(const ServerOptions& options) {
  if (options.admin_port == 0) return absl::OkStatus();
  if (!IsAddress(options.admin_bind_address)) {
    return absl::InvalidArgumentError(
        base::Cat("--admin_bind_address takes an IPv4 or IPv6 address such as 127.0.0.1, not \"",
                  options.admin_bind_address, "\""));
  }
  if (options.admin_port == options.port || options.admin_port == options.rest_api_port) {
    return absl::InvalidArgumentError(
        base::Cat("--admin_port=", options.admin_port, " is the port of other calls, too"));
  }
  const bool knows_callers =
      !options.access_rules_file.empty() || !options.tls_client_ca_file.empty();
  if (IsLoopback(options.admin_bind_address) || knows_callers) return absl::OkStatus();
  return absl::InvalidArgumentError(
      base::Cat("--admin_bind_address=", options.admin_bind_address,
                " is reached from elsewhere, so its callers need a token or a client certificate: "
                "give --access_rules_file or --tls_client_ca_file, or leave it at 127.0.0.1"));
}

void WarnAboutIgnoredModel(const ServerOptions& options, std::vector<std::string>* warnings) {
  if (options.model_config_file.empty() || options.model_base_path.empty()) return;
  warnings->push_back(
      "--model_base_path and --model_name have no effect: --model_config_file names the models");
}

}  // namespace

bool IsLoopback(const std::string& address) {
  in_addr v4{};
  in6_addr v6{};
  if (inet_pton(AF_INET, address.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  return inet_pton(AF_INET6, address.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

bool HasAdminListener(const ServerOptions& options) {
  return options.admin_port != 0 || !options.admin_socket_path.empty();
}

absl::Status CheckOptions(Style style, ServerOptions* options, std::vector<std::string>* warnings) {
  RETURN_IF_ERROR(CheckAsTheOriginal(*options));
  RETURN_IF_ERROR(CheckRefused(*options));
  RETURN_IF_ERROR(CheckRanges(*options));
  RETURN_IF_ERROR(CheckBudgets(*options));
  RETURN_IF_ERROR(CheckNetwork(style, options, warnings));
  RETURN_IF_ERROR(CheckAdmin(*options));
  WarnAboutIgnoredModel(*options, warnings);
  return absl::OkStatus();
}

}  // namespace tensord::config
