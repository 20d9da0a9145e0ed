// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>

namespace tensord::config {

// What the command line said: one member an option, named as its flag. The initial value here is
// the option's default; option_table.h has all else that is known about an option, and a test
// counts that no member is missing there.
//
// Zero stands for "let tensord choose" where the comment says so.
struct ServerOptions {
  // gRPC and HTTP.
  int32_t port = 8500;                     // gRPC over TCP; 0 turns it off.
  std::string grpc_socket_path{};          // gRPC over a UNIX socket; empty turns it off.
  int32_t grpc_max_threads = 0;            // Not used.
  std::string grpc_channel_arguments{};    // See channel_arguments.h.
  int32_t rest_api_port = 0;               // REST and the metrics page; 0 turns it off.
  int32_t rest_api_num_threads = 0;        // Not used.
  int32_t rest_api_timeout_in_ms = 30000;  // Of each REST call; <= 0 means none.
  bool rest_api_enable_cors_support = false;
  std::string oip_json_non_finite = "error";     // error | null
  int32_t admin_port = 0;                        // Admin calls on a port of their own; 0: none.
  std::string admin_bind_address = "127.0.0.1";  // Of that port.
  std::string admin_socket_path{};               // Admin calls on a UNIX socket.
  std::string access_rules_file{};               // Text-format tensord.AccessRules.
  std::string client_identity_header{};  // Names the client for fair shares; empty: its address.
  bool use_alts_credentials = false;
  std::string ssl_config_file{};
  std::string tls_certificate_file{};
  std::string tls_key_file{};
  std::string tls_client_ca_file{};
  bool enable_grpc_healthcheck_service = false;
  bool enable_profiler = true;
  bool enable_serialization_as_tensor_content = false;
  std::string bind_address{};  // IPv4 or IPv6 literal; empty: gRPC 0.0.0.0, REST :: or 0.0.0.0.

  // What to serve.
  std::string model_name = "default";
  std::string model_base_path{};
  std::string model_config_file{};
  int32_t model_config_file_poll_wait_seconds = 0;
  bool allow_version_labels_for_unavailable_models = false;
  std::string platform_config_file{};
  std::string saved_model_tags = "serve";
  bool prefer_tflite_model = false;
  int32_t num_tflite_pools = 0;
  int32_t num_tflite_interpreters_per_pool = 1;
  bool enable_signature_method_name_check = false;
  bool remove_unused_fields_from_bundle_metagraph = true;
  std::string model_settings_file{};  // Text-format tensord.ModelSettingsFile.
  std::string op_library{};           // Comma list of absolute paths; loaded for every model.

  // Loading and polling.
  int32_t file_system_poll_wait_seconds = 1;  // 0: look once; negative: never.
  int32_t num_load_threads = 0;
  int32_t num_unload_threads = 0;
  int32_t max_num_load_retries = 5;
  int64_t load_retry_interval_micros = 60'000'000;  // Negative: no pause.
  bool unload_missing_versions = false;             // As the original.
  bool flush_filesystem_caches = true;
  bool enable_model_warmup = true;
  int32_t num_request_iterations_for_warmup = 0;

  // Batching.
  bool enable_batching = false;
  std::string batching_parameters_file{};
  bool enable_per_model_batching_parameters = false;

  // The TensorFlow runtime.
  int64_t tensorflow_session_parallelism = 0;
  int64_t tensorflow_intra_op_parallelism = 0;
  int64_t tensorflow_inter_op_parallelism = 0;
  std::string tensorflow_session_config_file{};
  float per_process_gpu_memory_fraction = 0;
  bool xla_cpu_compilation_enabled = false;
  bool xla_gpu_compilation_enabled = false;
  std::string mixed_precision{};
  std::string thread_pool_factory_config_file{};
  bool skip_initialize_tpu = false;
  std::string
      tensorflow_library_dir{};      // Empty: found as design says (environment, site-packages).
  std::string litert_library_dir{};  // Likewise, for TensorFlow Lite models.

  // Metrics and logs.
  std::string monitoring_config_file{};
  bool allow_request_logs_by_rpc = false;
  std::string access_log{};
  std::string log_format = "text";  // text | json
  std::string log_level = "info";   // debug | info | warning | error

  // The process.
  std::string state_dir{};  // For hints that outlive a restart; empty: none are kept.
  bool version = false;
  int64_t drain_timeout_ms = 25'000;  // After the lame-duck time; Kubernetes kills at 30 s.
  int64_t drain_lame_duck_ms = 0;     // Not ready, but still serving everything.
  int32_t loops = 0;                  // Event loops; 0: by the number of CPUs.
  std::string sandbox = "enforce";    // enforce | best-effort | off, and their older spellings
  std::string accept_weak_sandbox{};  // files
  // First uid of the workers' own users when started as root; 0: keep ours. 61184 is where the
  // range begins that systemd reserves for services without a user of their own.
  int64_t worker_user_base = 61184;
  int64_t memory_limit_bytes = 0;    // Of all processes; 0: the cgroup's limit or the machine's.
  int64_t request_bytes_budget = 0;  // Bytes held for clients; 0: a quarter of the memory limit.

  bool operator==(const ServerOptions&) const = default;
};

}  // namespace tensord::config
