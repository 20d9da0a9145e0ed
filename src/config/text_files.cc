// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "config/text_files.h"

#include <limits>

#include "base/status_macros.h"
#include "base/text.h"
#include "config/access_rules.h"
#include "config/text_proto.h"
#include "config/tls_files.h"
#include "tensord/model_settings.pb.h"
#include "tensord/monitoring_config.pb.h"

namespace tensord::config {
namespace {

namespace tfs = tensorflow::serving;

// A number of a file that must not be below `min`.
absl::Status CheckAtLeast(std::string_view what, int64_t value, int64_t min) {
  if (value >= min) return absl::OkStatus();
  return absl::InvalidArgumentError(base::Cat(what, " must be at least ", min, ", not ", value));
}

// Counts of threads, workers and rows: none is sensible above this, and it fits an int.
absl::Status CheckCount(std::string_view what, int64_t value) {
  constexpr int64_t kMax = 65536;
  if (value >= 1 && value <= kMax) return absl::OkStatus();
  return absl::InvalidArgumentError(base::Cat(what, " must be from 1 to ", kMax, ", not ", value));
}

absl::Status CheckSettings(const tensord::ModelSettings& file) {
  if (file.has_executors()) RETURN_IF_ERROR(CheckCount("executors", file.executors()));
  if (file.has_intra_op_threads()) {
    RETURN_IF_ERROR(CheckCount("intra_op_threads", file.intra_op_threads()));
  }
  if (file.has_inter_op_threads()) {
    RETURN_IF_ERROR(CheckCount("inter_op_threads", file.inter_op_threads()));
  }
  if (file.has_replicas()) RETURN_IF_ERROR(CheckCount("replicas", file.replicas()));
  for (const uint32_t rows : file.warm_up_rows()) {
    RETURN_IF_ERROR(CheckCount("warm_up_rows", rows));
  }
  if (file.batching().has_rows_max()) {
    RETURN_IF_ERROR(CheckCount("batching.rows_max", file.batching().rows_max()));
  }
  RETURN_IF_ERROR(CheckAtLeast("batching.timeout_micros", file.batching().timeout_micros(), 0));
  if (file.has_run_timeout_ms()) {
    RETURN_IF_ERROR(CheckAtLeast("run_timeout_ms", file.run_timeout_ms(), 1));
  }
  if (file.has_load_timeout_ms()) {
    RETURN_IF_ERROR(CheckAtLeast("load_timeout_ms", file.load_timeout_ms(), 1));
  }
  if (file.has_sandbox_stage() && file.sandbox_stage() != 1 && file.sandbox_stage() != 2) {
    return absl::InvalidArgumentError(base::Cat("sandbox_stage must be 1 or 2, not ",
                                                file.sandbox_stage(), "; sandbox: false is none"));
  }
  for (const std::string& library : file.op_libraries()) {
    if (library.starts_with('/')) continue;
    return absl::InvalidArgumentError(
        base::Cat("op_libraries must be absolute paths, not \"", library, "\""));
  }
  return absl::OkStatus();
}

ModelSettings::OneDnn ToOneDnn(tensord::ModelSettings::OneDnn file) {
  if (file == tensord::ModelSettings::ONEDNN_ON) return ModelSettings::OneDnn::kOn;
  if (file == tensord::ModelSettings::ONEDNN_OFF) return ModelSettings::OneDnn::kOff;
  return ModelSettings::OneDnn::kAuto;
}

// REQUIRES: CheckSettings passed.
ModelSettings ToSettings(const tensord::ModelSettings& file) {
  ModelSettings settings;
  if (file.has_executors()) settings.executors = static_cast<int>(file.executors());
  if (file.has_intra_op_threads()) {
    settings.intra_op_threads = static_cast<int>(file.intra_op_threads());
  }
  if (file.has_inter_op_threads()) {
    settings.inter_op_threads = static_cast<int>(file.inter_op_threads());
  }
  if (file.has_replicas()) settings.replicas = static_cast<int>(file.replicas());
  settings.warm_up_rows.assign(file.warm_up_rows().begin(), file.warm_up_rows().end());
  if (file.has_synthetic_warm_up()) settings.synthetic_warm_up = file.synthetic_warm_up();
  if (file.has_warm_up_strict()) settings.warm_up_strict = file.warm_up_strict();
  settings.onednn = ToOneDnn(file.onednn());
  settings.op_libraries.assign(file.op_libraries().begin(), file.op_libraries().end());
  if (file.has_memory_limit_bytes()) settings.memory_limit_bytes = file.memory_limit_bytes();
  if (file.has_model_memory_limit_bytes()) {
    settings.model_memory_limit_bytes = file.model_memory_limit_bytes();
  }
  if (file.has_run_timeout_ms()) settings.run_timeout_ms = file.run_timeout_ms();
  if (file.has_load_timeout_ms()) settings.load_timeout_ms = file.load_timeout_ms();
  const tensord::ModelSettings::Batching& batching = file.batching();
  if (batching.has_enabled()) settings.batching_enabled = batching.enabled();
  if (batching.has_rows_max()) settings.batch_rows_max = batching.rows_max();
  if (batching.has_timeout_micros()) settings.batch_timeout_micros = batching.timeout_micros();
  if (file.has_runs_in_caller()) settings.runs_in_caller = file.runs_in_caller();
  if (file.has_sandbox()) settings.sandbox = file.sandbox();
  if (file.has_sandbox_stage()) settings.sandbox_stage = static_cast<int>(file.sandbox_stage());
  return settings;
}

// What an access rules file cannot do as the server is started.
void WarnAboutRules(const AccessRules& rules, const ServerOptions& options, const TlsPorts& tls,
                    Warnings* warnings) {
  bool tokens = false;
  bool certificates = false;
  for (const AccessRules::Identity& identity : rules.identities) {
    tokens |= !identity.tokens.empty();
    certificates |= !identity.certificate_names.empty();
  }
  const auto verifies = [](const std::optional<tls::Material>& port) {
    return port.has_value() && port->verify_client;
  };
  if (certificates && !verifies(tls.grpc) && !verifies(tls.rest)) {
    warnings->push_back(
        "access rules: no port asks clients for certificates, so no certificate_name is ever seen; "
        "--tls_client_ca_file makes both ports ask");
  }
  if (tokens && (!tls.grpc || (!tls.rest && options.rest_api_port != 0))) {
    warnings->push_back(
        "access rules: tokens travel in plain on a port without TLS, where others can read them "
        "(--tls_certificate_file)");
  }
}

}  // namespace

absl::StatusOr<Monitoring> LoadMonitoring(const ServerOptions& options, FileTexts* texts) {
  Monitoring monitoring;
  const std::string& path = options.monitoring_config_file;
  if (path.empty()) return monitoring;
  tfs::MonitoringConfig file;
  RETURN_IF_ERROR(ReadTextProto("monitoring_config_file", path, texts, &file));
  monitoring.prometheus = file.prometheus_config().enable();
  if (file.prometheus_config().path().empty()) return monitoring;
  monitoring.path = file.prometheus_config().path();
  if (!monitoring.path.starts_with('/')) {
    return absl::InvalidArgumentError(base::Cat(
        path, ": prometheus_config.path must begin with /, not be \"", monitoring.path, "\""));
  }
  return monitoring;
}

absl::StatusOr<std::map<std::string, ModelSettings>> LoadModelSettings(const ServerOptions& options,
                                                                       FileTexts* texts) {
  std::map<std::string, ModelSettings> settings;
  const std::string& path = options.model_settings_file;
  if (path.empty()) return settings;
  tensord::ModelSettingsFile file;
  RETURN_IF_ERROR(ReadTextProto("model_settings_file", path, texts, &file));
  for (const auto& [name, model] : file.model()) {
    if (absl::Status status = CheckSettings(model); !status.ok()) {
      return base::WithContext(status, base::Cat(path, ": model ", name, ": "));
    }
    settings[name] = ToSettings(model);
  }
  return settings;
}

absl::Status CheckFiles(const ServerOptions& options, Warnings* warnings) {
  ASSIGN_OR_RETURN(const Platforms platforms, LoadPlatforms(options, warnings));
  RETURN_IF_ERROR(LoadModels(options, platforms, warnings).status());
  RETURN_IF_ERROR(LoadMonitoring(options).status());
  ASSIGN_OR_RETURN(const TlsPorts tls, LoadTls(options));
  RETURN_IF_ERROR(CheckTls(tls));
  ASSIGN_OR_RETURN(const std::optional<AccessRules> rules, LoadAccessRules(options));
  if (rules.has_value() && warnings != nullptr) WarnAboutRules(*rules, options, tls, warnings);
  return LoadModelSettings(options).status();
}

}  // namespace tensord::config
