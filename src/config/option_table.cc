// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "config/option_table.h"

#include <algorithm>

namespace tensord::config {
namespace {

using S = ServerOptions;
using enum OptionGroup;
using enum OptionState;
constexpr OptionOrigin kOriginal = OptionOrigin::kOriginal;
constexpr OptionOrigin kOurs = OptionOrigin::kTensord;

constexpr Option kOptions[] = {
    // gRPC and HTTP.
    {"port", kNetwork, &S::port, kOriginal, kWorks,
     "TCP port for gRPC; 0 turns it off (then --grpc_socket_path is needed)"},
    {"grpc_socket_path", kNetwork, &S::grpc_socket_path, kOriginal, kWorks,
     "Also serve gRPC on a UNIX socket at this path"},
    {"rest_api_port", kNetwork, &S::rest_api_port, kOriginal, kWorks,
     "TCP port for REST, health and metrics over HTTP; 0 turns it off; `tensord serve` tells gRPC "
     "and REST apart on one port when it equals --port, the alias leaves REST off then"},
    {"rest_api_timeout_in_ms", kNetwork, &S::rest_api_timeout_in_ms, kOriginal, kWorks,
     "Deadline of each REST call in milliseconds; 0 or less: an hour"},
    {"bind_address", kNetwork, &S::bind_address, kOurs, kWorks,
     "IPv4 or IPv6 address that both TCP ports listen on; empty: 0.0.0.0 for gRPC and, for REST, "
     "every address of both families"},
    {"grpc_max_threads", kNetwork, &S::grpc_max_threads, kOriginal, kNotNeeded,
     "Thread limit of gRPC's resource quota", "calls in flight need no threads here"},
    {"grpc_channel_arguments", kNetwork, &S::grpc_channel_arguments, kOriginal, kWorks,
     "Comma list of name=value settings of the gRPC library. Honoured: "
     "grpc.max_receive_message_length, grpc.max_send_message_length, grpc.max_concurrent_streams, "
     "grpc.max_connection_idle_ms, grpc.max_connection_age_ms, grpc.max_connection_age_grace_ms, "
     "grpc.keepalive_time_ms, grpc.keepalive_timeout_ms, grpc.keepalive_permit_without_calls, "
     "grpc.default_compression_algorithm"},
    {"rest_api_num_threads", kNetwork, &S::rest_api_num_threads, kOriginal, kNotNeeded,
     "Number of HTTP worker threads", "REST calls in flight need no threads here"},
    {"rest_api_enable_cors_support", kNetwork, &S::rest_api_enable_cors_support, kOriginal, kWorks,
     "Add CORS headers to REST answers, so that web pages of every origin may read them"},
    {"oip_json_non_finite", kNetwork, &S::oip_json_non_finite, kOurs, kWorks,
     "What JSON answers under /v2 say of NaN and infinities, for which JSON has no form: error "
     "(the "
     "call fails) or null",
     "", "error,null"},
    {"client_identity_header", kNetwork, &S::client_identity_header, kOurs, kWorks,
     "Header or gRPC metadata, in lower case, that names the client a request is from, for fair "
     "shares under overload; set it where a proxy that you trust sets the header; empty: the "
     "peer's "
     "address"},
    {"enable_grpc_healthcheck_service", kNetwork, &S::enable_grpc_healthcheck_service, kOriginal,
     kNotNeeded, "Serve grpc.health.v1.Health", "the health service is always on"},
    {"enable_profiler", kNetwork, &S::enable_profiler, kOriginal, kNoEffect,
     "Serve TensorFlow's ProfilerService on the gRPC port",
     "models run in sandboxed workers, which no profiler session reaches"},
    {"enable_serialization_as_tensor_content", kNetwork, &S::enable_serialization_as_tensor_content,
     kOriginal, kWorks, "Answer Predict with tensor_content instead of typed value fields"},
    {"admin_port", kNetwork, &S::admin_port, kOurs, kWorks,
     "TCP port for admin calls (reload, load, unload, the repository's index), gRPC and REST; with "
     "it or --admin_socket_path the other ports take none; 0 turns it off"},
    {"admin_bind_address", kNetwork, &S::admin_bind_address, kOurs, kWorks,
     "IPv4 or IPv6 address that --admin_port listens on; where it is no loopback address, callers "
     "need a token (--access_rules_file) or a client certificate (--tls_client_ca_file)"},
    {"admin_socket_path", kNetwork, &S::admin_socket_path, kOurs, kWorks,
     "UNIX socket for admin calls, gRPC and REST"},
    {"access_rules_file", kNetwork, &S::access_rules_file, kOurs, kWorks,
     "Text-format tensord.AccessRules: who may run, read and manage which models, by token or "
     "client "
     "certificate; read again when it changes; without it all is open, as with the original"},
    {"use_alts_credentials", kNetwork, &S::use_alts_credentials, kOriginal, kRefused,
     "Use Google ALTS for gRPC", "ALTS is not supported, and a port without it would be open"},
    {"ssl_config_file", kNetwork, &S::ssl_config_file, kOriginal, kWorks,
     "Text-format SSLConfig (PEM texts): TLS for the gRPC port; read again when it changes"},
    {"tls_certificate_file", kNetwork, &S::tls_certificate_file, kOurs, kWorks,
     "PEM file with the server's certificate chain: TLS for both TCP ports (for gRPC, "
     "--ssl_config_file goes first); read again when it changes"},
    {"tls_key_file", kNetwork, &S::tls_key_file, kOurs, kWorks,
     "PEM file with the private key of --tls_certificate_file"},
    {"tls_client_ca_file", kNetwork, &S::tls_client_ca_file, kOurs, kWorks,
     "PEM file with the authorities that sign clients: whoever has no certificate of theirs is "
     "refused"},

    // What to serve.
    {"model_name", kModels, &S::model_name, kOriginal, kWorks,
     "Name of the one model; ignored with --model_config_file"},
    {"model_base_path", kModels, &S::model_base_path, kOriginal, kWorks,
     "Directory whose numbered subdirectories are the versions of the one model; absolute"},
    {"model_config_file", kModels, &S::model_config_file, kOriginal, kWorks,
     "Text-format ModelServerConfig: names, paths, platforms and version policies of all models; "
     "read again on SIGHUP"},
    {"model_settings_file", kModels, &S::model_settings_file, kOurs, kWorks,
     "Text-format tensord.ModelSettingsFile: settings by model name that ModelServerConfig has no "
     "place for"},
    {"op_library", kModels, &S::op_library, kOurs, kWorks,
     "Comma list of shared libraries with custom ops, by absolute path; loaded into every worker "
     "before its model"},
    {"model_config_file_poll_wait_seconds", kModels, &S::model_config_file_poll_wait_seconds,
     kOriginal, kWorks, "Read the model config file again on this period; 0: never"},
    {"allow_version_labels_for_unavailable_models", kModels,
     &S::allow_version_labels_for_unavailable_models, kOriginal, kWorks,
     "Let a reload point a label to a version that is not loaded yet"},
    {"platform_config_file", kModels, &S::platform_config_file, kOriginal, kWorks,
     "Text-format PlatformConfigMap: how models of each platform are loaded and batched; replaces "
     "the session, batching, tag and warm-up flags"},
    {"saved_model_tags", kModels, &S::saved_model_tags, kOriginal, kWorks,
     "Comma list of the tags of the graph to load from a SavedModel; they must be all of its tags"},
    {"prefer_tflite_model", kModels, &S::prefer_tflite_model, kOriginal, kWorks,
     "Serve model.tflite where a version has one, by LiteRT (see --litert_library_dir)"},
    {"num_tflite_interpreters_per_pool", kModels, &S::num_tflite_interpreters_per_pool, kOriginal,
     kNoEffect, "TensorFlow Lite interpreters a pool; more than 1 batches requests",
     "requests for TensorFlow Lite models share runs where --enable_batching or the model's "
     "settings say so"},
    {"num_tflite_pools", kModels, &S::num_tflite_pools, kOriginal, kWorks,
     "Interpreters of a TensorFlow Lite model, each for one run at a time; 0: one a CPU"},
    {"enable_signature_method_name_check", kModels, &S::enable_signature_method_name_check,
     kOriginal, kWorks, "Refuse calls whose kind is not the signature's method_name"},
    {"remove_unused_fields_from_bundle_metagraph", kModels,
     &S::remove_unused_fields_from_bundle_metagraph, kOriginal, kNotNeeded,
     "Keep only the signatures of a loaded meta graph in memory",
     "meta graphs are never kept in memory here"},

    // Loading and polling.
    {"file_system_poll_wait_seconds", kLoading, &S::file_system_poll_wait_seconds, kOriginal,
     kWorks, "Seconds between looks for new versions; 0: look once; negative: never look"},
    {"max_num_load_retries", kLoading, &S::max_num_load_retries, kOriginal, kWorks,
     "Tries to load a version after the first one failed"},
    {"load_retry_interval_micros", kLoading, &S::load_retry_interval_micros, kOriginal, kWorks,
     "Microseconds between tries to load a version; negative: no pause"},
    {"unload_missing_versions", kLoading, &S::unload_missing_versions, kOurs, kWorks,
     "Unload a version when its directory is deleted, as the original does; without it what serves "
     "serves on until another version takes over"},
    {"num_load_threads", kLoading, &S::num_load_threads, kOriginal, kNotNeeded,
     "Threads that load models after start-up", "each version loads in a process of its own"},
    {"num_unload_threads", kLoading, &S::num_unload_threads, kOriginal, kNotNeeded,
     "Threads that unload models", "a version is unloaded by ending its process"},
    {"flush_filesystem_caches", kLoading, &S::flush_filesystem_caches, kOriginal, kNotNeeded,
     "Drop TensorFlow's file system caches after loading",
     "the caches end with the process that loaded the version"},
    {"enable_model_warmup", kLoading, &S::enable_model_warmup, kOriginal, kWorks,
     "Before a version is visible, replay its recorded requests "
     "(assets.extra/tf_serving_warmup_requests), or run each signature on zeros where there are "
     "none"},
    {"num_request_iterations_for_warmup", kLoading, &S::num_request_iterations_for_warmup,
     kOriginal, kWorks, "Runs of each recorded warm-up request; 0: one"},

    // Batching.
    {"enable_batching", kBatching, &S::enable_batching, kOriginal, kWorks,
     "Batch by the rules of --batching_parameters_file; without it tensord decides what to batch"},
    {"batching_parameters_file", kBatching, &S::batching_parameters_file, kOriginal, kWorks,
     "Text-format BatchingParameters; needs --enable_batching"},
    {"enable_per_model_batching_parameters", kBatching, &S::enable_per_model_batching_parameters,
     kOriginal, kWorks,
     "Take batching parameters from batching_params.pbtxt in each version's directory; a version "
     "without that file is not batched; needs --enable_batching"},

    // The TensorFlow runtime.
    {"tensorflow_library_dir", kRuntime, &S::tensorflow_library_dir, kOurs, kWorks,
     "Directory of libtensorflow_framework.so.2 and libtensorflow_cc.so.2; empty: "
     "$TENSORD_TENSORFLOW_DIR, beside the binary, then Python's site-packages"},
    {"litert_library_dir", kRuntime, &S::litert_library_dir, kOurs, kWorks,
     "Directory of libLiteRt.so (the Python package ai-edge-litert, 2.2 or 2.3), looked for when a "
     "model.tflite is served; empty: $TENSORD_LITERT_DIR, then as for TensorFlow's libraries"},
    {"tensorflow_session_parallelism", kRuntime, &S::tensorflow_session_parallelism, kOriginal,
     kWorks, "Threads of both pools of a session; 0: chosen"},
    {"tensorflow_intra_op_parallelism", kRuntime, &S::tensorflow_intra_op_parallelism, kOriginal,
     kWorks, "Threads that one op may use; 0: chosen"},
    {"tensorflow_inter_op_parallelism", kRuntime, &S::tensorflow_inter_op_parallelism, kOriginal,
     kWorks, "Ops that may run in parallel; 0: chosen"},
    {"tensorflow_session_config_file", kRuntime, &S::tensorflow_session_config_file, kOriginal,
     kWorks,
     "Text-format ConfigProto that every session starts from; other options win over it where they "
     "are given"},
    {"per_process_gpu_memory_fraction", kRuntime, &S::per_process_gpu_memory_fraction, kOriginal,
     kWorks,
     "Part of a GPU's memory that one worker may take, as it needs it; 0: all that is free"},
    {"xla_cpu_compilation_enabled", kRuntime, &S::xla_cpu_compilation_enabled, kOriginal,
     kNotNeeded, "Let models that ask for it be compiled for the CPU with XLA",
     "a model that asks for it is always compiled"},
    {"xla_gpu_compilation_enabled", kRuntime, &S::xla_gpu_compilation_enabled, kOriginal,
     kNotNeeded, "Let models that ask for it be compiled for the GPU with XLA",
     "a model that asks for it is always compiled"},
    {"mixed_precision", kRuntime, &S::mixed_precision, kOriginal, kWorks,
     "\"bfloat16\": let oneDNN compute in bfloat16, in a worker that has oneDNN on; anything else "
     "is a warning"},
    {"thread_pool_factory_config_file", kRuntime, &S::thread_pool_factory_config_file, kOriginal,
     kNoEffect, "Text-format ThreadPoolFactoryConfig",
     "no thread pool factory exists, in the original either"},
    {"skip_initialize_tpu", kRuntime, &S::skip_initialize_tpu, kOriginal, kNotNeeded,
     "Leave the TPU system as it is at start-up", "TPUs are not used"},

    // Metrics and logs.
    {"monitoring_config_file", kObservation, &S::monitoring_config_file, kOriginal, kWorks,
     "Text-format MonitoringConfig: turns the metrics page on and names its path; needs "
     "--rest_api_port"},
    {"allow_request_logs_by_rpc", kObservation, &S::allow_request_logs_by_rpc, kOurs, kWorks,
     "Let HandleReloadConfigRequest name request logs (logging_config) that no configuration file "
     "names"},
    {"access_log", kObservation, &S::access_log, kOurs, kWorks,
     "Write a JSON line for each request to this file, or to stdout; it is opened anew on SIGHUP "
     "and when it was renamed; empty: no access log"},
    {"log_format", kObservation, &S::log_format, kOurs, kWorks,
     "One log line as text or as a JSON object", "", "text,json"},
    {"log_level", kObservation, &S::log_level, kOurs, kWorks, "The least severe lines to log", "",
     "debug,info,warning,error"},

    // The process.
    {"version", kProcess, &S::version, kOriginal, kWorks, "Print versions and exit"},
    {"state_dir", kProcess, &S::state_dir, kOurs, kWorks,
     "Directory for what is worth knowing after a restart: how long models' runs take. Must exist; "
     "nothing in it is trusted beyond numbers; empty: nothing is kept"},
    {"drain_timeout_ms", kProcess, &S::drain_timeout_ms, kOurs, kWorks,
     "Milliseconds that requests in flight get to finish after SIGTERM or SIGINT"},
    {"drain_lame_duck_ms", kProcess, &S::drain_lame_duck_ms, kOurs, kWorks,
     "Milliseconds, before that, in which the server says it is not ready and still takes "
     "requests"},
    {"sandbox", kProcess, &S::sandbox, kOurs, kWorks,
     "Confine workers: enforce (or on) loads no model where the least of it does not hold "
     "(SECURITY.md), best-effort says what is missing and goes on",
     "", "enforce,best-effort,off,on,best_effort"},
    {"accept_weak_sandbox", kProcess, &S::accept_weak_sandbox, kOurs, kWorks,
     "What --sandbox=enforce may go without: files, on a kernel without Landlock, where a model "
     "can "
     "read every file that its user can",
     "", "files"},
    {"worker_user_base", kProcess, &S::worker_user_base, kOurs, kWorks,
     "When started as root: the first of the user ids that workers run under, one a worker; 0: "
     "workers keep the server's user"},
    {"memory_limit_bytes", kProcess, &S::memory_limit_bytes, kOurs, kWorks,
     "Memory that all workers may be estimated to need together when one more is started; 0: the "
     "cgroup's limit or the machine's memory"},
    {"request_bytes_budget", kProcess, &S::request_bytes_budget, kOurs, kWorks,
     "Bytes held for requests and answers at once; 0: a quarter of the memory limit"},
    {"loops", kProcess, &S::loops, kOurs, kWorks,
     "Event loops of the front; 0: one up to 4 CPUs, then one more for each 8"},
};

}  // namespace

std::string_view GroupTitle(OptionGroup group) {
  switch (group) {
    case kNetwork:
      return "gRPC and HTTP";
    case kModels:
      return "What to serve";
    case kLoading:
      return "Loading and polling";
    case kBatching:
      return "Batching";
    case kRuntime:
      return "The TensorFlow runtime";
    case kObservation:
      return "Metrics and logs";
    case kProcess:
      return "The process";
  }
  return "";
}

std::span<const Option> OptionTable() { return kOptions; }

const Option* FindOption(std::string_view name) {
  const auto* found = std::find_if(std::begin(kOptions), std::end(kOptions),
                                   [&](const Option& option) { return option.name == name; });
  return found == std::end(kOptions) ? nullptr : found;
}

}  // namespace tensord::config
