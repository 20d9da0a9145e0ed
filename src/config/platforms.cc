// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "config/platforms.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "config/batching_parameters.h"
#include "config/option_table.h"
#include "config/text_proto.h"
#include "tensord/platform_config.pb.h"
#include "tensord/session_bundle_config.pb.h"

namespace tensord::config {
namespace {

namespace tfs = tensorflow::serving;

void Warn(Warnings* warnings, std::string text) {
  if (warnings != nullptr) warnings->push_back(std::move(text));
}

// As RewriterConfig has it, where "bfloat16" is the only word that the original knows.
bool IsBfloat16(std::string_view where, const std::string& mixed_precision, Warnings* warnings) {
  if (mixed_precision.empty() || mixed_precision == "bfloat16") return !mixed_precision.empty();
  Warn(warnings, base::Cat(where, ": ", mixed_precision,
                           " auto mixed precision is not supported. Valid options are: bfloat16"));
  return false;
}

// It travels to the worker in one record, beside paths and tags.
absl::StatusOr<std::string> Serialize(std::string_view where,
                                      const tensorflow::ConfigProto& config) {
  std::string bytes = config.SerializeAsString();
  if (bytes.size() <= limits::kSessionConfigBytesMax) return bytes;
  return absl::InvalidArgumentError(base::Cat(where, ": the ConfigProto takes ", bytes.size(),
                                              " bytes, more than the ",
                                              limits::kSessionConfigBytesMax, " allowed"));
}

// ---- The flags
// -----------------------------------------------------------------------------------

absl::StatusOr<std::optional<BatchingParameters>> BatchingOfFlags(const ServerOptions& options,
                                                                  Warnings* warnings,
                                                                  FileTexts* texts) {
  const std::string& path = options.batching_parameters_file;
  if (!options.enable_batching) {
    if (path.empty()) return std::optional<BatchingParameters>();
    return absl::InvalidArgumentError(
        "server_options.batching_parameters_file is set without setting "
        "server_options.enable_batching to true.");
  }
  if (path.empty()) return std::optional(BatchingParameters());
  ASSIGN_OR_RETURN(const std::string text, ReadFile("batching_parameters_file", path, texts));
  ASSIGN_OR_RETURN(BatchingParameters parameters, ParseBatchingParameters(text, path, warnings));
  return std::optional(std::move(parameters));
}

absl::StatusOr<std::string> SessionOfFlags(const ServerOptions& options, FileTexts* texts) {
  tensorflow::ConfigProto config;
  const std::string& path = options.tensorflow_session_config_file;
  if (!path.empty()) {
    RETURN_IF_ERROR(ReadTextProto("tensorflow_session_config_file", path, texts, &config));
  }
  const int64_t both = options.tensorflow_session_parallelism;
  const int64_t intra = options.tensorflow_intra_op_parallelism;
  const int64_t inter = options.tensorflow_inter_op_parallelism;
  if (both > 0 && intra > 0 && inter > 0) {
    return absl::InvalidArgumentError(
        "Either configure server_options.tensorflow_session_parallelism or "
        "(server_options.tensorflow_intra_op_parallelism, "
        "server_options.tensorflow_inter_op_parallelism) separately. You cannot configure all.");
  }
  const bool one_is_set = intra > 0 || inter > 0;
  const int64_t intra_wanted = one_is_set ? intra : both;
  const int64_t inter_wanted = one_is_set ? inter : both;
  if (intra_wanted > 0) config.set_intra_op_parallelism_threads(static_cast<int>(intra_wanted));
  if (inter_wanted > 0) config.set_inter_op_parallelism_threads(static_cast<int>(inter_wanted));
  if (const float fraction = options.per_process_gpu_memory_fraction; fraction > 0) {
    config.mutable_gpu_options()->set_per_process_gpu_memory_fraction(fraction);
  }
  return Serialize(path, config);
}

absl::StatusOr<Platforms> PlatformsOfFlags(const ServerOptions& options, Warnings* warnings,
                                           FileTexts* texts) {
  PlatformSettings settings;
  ASSIGN_OR_RETURN(settings.batching, BatchingOfFlags(options, warnings, texts));
  ASSIGN_OR_RETURN(settings.session_config, SessionOfFlags(options, texts));
  if (!options.saved_model_tags.empty()) {
    settings.saved_model_tags = absl::StrSplit(options.saved_model_tags, ',');
    if (std::ranges::count(settings.saved_model_tags, "") > 0) {
      return absl::InvalidArgumentError(
          base::Cat("--saved_model_tags=", options.saved_model_tags,
                    " has an empty tag; give tags with one comma between them, as serve,gpu"));
    }
  }
  settings.per_model_batching =
      options.enable_batching && options.enable_per_model_batching_parameters;
  if (options.enable_per_model_batching_parameters && !options.enable_batching) {
    Warn(warnings,
         "--enable_per_model_batching_parameters has no effect without --enable_batching");
  }
  settings.warm_up = options.enable_model_warmup;
  settings.warm_up_repeats = options.num_request_iterations_for_warmup;
  settings.bfloat16 = IsBfloat16("--mixed_precision", options.mixed_precision, warnings);
  settings.prefer_tflite = options.prefer_tflite_model;
  settings.tflite_interpreters = std::max(0, options.num_tflite_pools);
  return Platforms{{"tensorflow", std::move(settings)}};
}

// ---- The file
// ------------------------------------------------------------------------------------

// Fields that change nothing here. What would change answers is an error.
absl::Status CheckBundle(std::string_view where, const tfs::SessionBundleConfig& bundle,
                         Warnings* warnings) {
  const auto warn = [&](bool set, std::string_view field, std::string_view why) {
    if (set) Warn(warnings, base::Cat(where, ": ", field, " has no effect: ", why));
  };
  if (!bundle.experimental_fixed_input_tensors().empty()) {
    return absl::InvalidArgumentError(
        base::Cat(where,
                  ": experimental_fixed_input_tensors would be part of every run, and they are not "
                  "supported; give the inputs default values in the signature"));
  }
  warn(!bundle.session_target().empty(), "session_target", "every session is local");
  warn(bundle.has_in_graph_batching_parameters(), "in_graph_batching_parameters",
       "graphs are not rewritten to batch within; batching_parameters batches around them");
  warn(bundle.model_warmup_options().num_model_warmup_threads().value() > 1,
       "model_warmup_options.num_model_warmup_threads", "one request warms the model at a time");
  warn(bundle.model_warmup_options().enable_all_batch_sizes_warmup(),
       "model_warmup_options.enable_all_batch_sizes_warmup",
       "records run as they are, and a model without records is warmed up in all sizes anyway");
  warn(bundle.has_session_run_load_threadpool_index(), "session_run_load_threadpool_index",
       "each version loads in a process of its own");
  warn(bundle.experimental_transient_ram_bytes_during_load() > 0,
       "experimental_transient_ram_bytes_during_load",
       "what a version needs is estimated from its files");
  warn(bundle.num_tflite_interpreters_per_pool() > 1, "num_tflite_interpreters_per_pool",
       "requests share runs only where batching is on");
  warn(bundle.enable_per_model_batching_params() && !bundle.has_batching_parameters(),
       "enable_per_model_batching_params", "there are no batching_parameters");
  return absl::OkStatus();
}

absl::StatusOr<PlatformSettings> SettingsOfBundle(std::string_view where,
                                                  const tfs::SessionBundleConfig& bundle,
                                                  Warnings* warnings) {
  RETURN_IF_ERROR(CheckBundle(where, bundle, warnings));
  PlatformSettings settings;
  ASSIGN_OR_RETURN(settings.session_config, Serialize(where, bundle.session_config()));
  if (!bundle.saved_model_tags().empty()) {
    settings.saved_model_tags.assign(bundle.saved_model_tags().begin(),
                                     bundle.saved_model_tags().end());
  }
  if (bundle.has_batching_parameters()) {
    Warnings own;
    auto parameters = ToBatchingParameters(bundle.batching_parameters(), &own);
    if (!parameters.ok()) {
      return base::WithContext(parameters.status(), base::Cat(where, ": batching_parameters: "));
    }
    for (const std::string& warning : own) Warn(warnings, base::Cat(where, ": ", warning));
    settings.batching = *std::move(parameters);
    settings.per_model_batching = bundle.enable_per_model_batching_params();
  }
  settings.warm_up = bundle.enable_model_warmup();
  settings.warm_up_repeats = bundle.model_warmup_options().num_request_iterations().value();
  settings.bfloat16 = IsBfloat16(where, bundle.mixed_precision(), warnings);
  settings.session_metadata = bundle.enable_session_metadata();
  settings.prefer_tflite = bundle.prefer_tflite_model();
  settings.tflite_interpreters = std::max(0, bundle.num_tflite_pools());
  return settings;
}

absl::StatusOr<PlatformSettings> SettingsOfPlatform(std::string_view where,
                                                    const tfs::PlatformConfig& platform,
                                                    Warnings* warnings) {
  tfs::SavedModelBundleSourceAdapterConfig adapter;
  const std::string& name = adapter.GetDescriptor()->full_name();
  if (!platform.source_adapter_config().Is<tfs::SavedModelBundleSourceAdapterConfig>()) {
    const std::string& type = platform.source_adapter_config().type_url();
    return absl::InvalidArgumentError(
        base::Cat(where, ": source_adapter_config must be a [type.googleapis.com/", name, "], not ",
                  type.empty() ? std::string("unset") : base::Cat("a [", type, "]")));
  }
  if (!platform.source_adapter_config().UnpackTo(&adapter)) {
    return absl::InvalidArgumentError(
        base::Cat(where, ": the bytes of source_adapter_config are no ", name));
  }
  return SettingsOfBundle(where, adapter.legacy_config(), warnings);
}

// Flags that speak of what the file says: the original reads none of them then.
void WarnAboutIgnoredFlags(const ServerOptions& options, Warnings* warnings) {
  constexpr std::string_view kFlags[] = {"enable_batching",
                                         "batching_parameters_file",
                                         "enable_per_model_batching_parameters",
                                         "tensorflow_session_config_file",
                                         "tensorflow_session_parallelism",
                                         "tensorflow_intra_op_parallelism",
                                         "tensorflow_inter_op_parallelism",
                                         "per_process_gpu_memory_fraction",
                                         "saved_model_tags",
                                         "enable_model_warmup",
                                         "num_request_iterations_for_warmup",
                                         "mixed_precision",
                                         "prefer_tflite_model",
                                         "num_tflite_pools"};
  for (const std::string_view flag : kFlags) {
    if (IsDefault(*FindOption(flag), options)) continue;
    Warn(warnings, base::Cat("--", flag, " has no effect: --platform_config_file replaces it"));
  }
}

absl::StatusOr<Platforms> PlatformsOfFile(const ServerOptions& options, Warnings* warnings,
                                          FileTexts* texts) {
  const std::string& path = options.platform_config_file;
  tfs::PlatformConfigMap file;
  RETURN_IF_ERROR(ReadTextProto("platform_config_file", path, texts, &file));
  if (file.platform_configs().empty()) {
    return absl::InvalidArgumentError(
        base::Cat(path, ": there are no platform_configs, so no model could be loaded"));
  }
  WarnAboutIgnoredFlags(options, warnings);
  Platforms platforms;
  for (const auto& [name, platform] : file.platform_configs()) {
    ASSIGN_OR_RETURN(
        platforms[name],
        SettingsOfPlatform(base::Cat(path, ": platform \"", name, "\""), platform, warnings));
  }
  return platforms;
}

}  // namespace

absl::StatusOr<Platforms> LoadPlatforms(const ServerOptions& options, Warnings* warnings,
                                        FileTexts* texts) {
  return options.platform_config_file.empty() ? PlatformsOfFlags(options, warnings, texts)
                                              : PlatformsOfFile(options, warnings, texts);
}

}  // namespace tensord::config
