// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <set>

#include "base/status_macros.h"
#include "base/text.h"
#include "config/text_files.h"
#include "config/text_proto.h"
#include "tensord/model_server_config.pb.h"

namespace tensord::config {
namespace {

namespace tfs = tensorflow::serving;

constexpr std::string_view kTensorFlow = "tensorflow";

void Warn(Warnings* warnings, std::string text) {
  if (warnings != nullptr) warnings->push_back(std::move(text));
}

// Deprecated by the original, and still read by it.
tfs::ModelType DeprecatedType(const tfs::ModelConfig& model) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  return model.model_type();
#pragma GCC diagnostic pop
}

// The original's rules and words.
absl::StatusOr<std::string> Platform(const tfs::ModelConfig& model, const Platforms& platforms,
                                     Warnings* warnings) {
  std::string platform = model.model_platform();
  const tfs::ModelType type = DeprecatedType(model);
  if (type != tfs::MODEL_TYPE_UNSPECIFIED) {
    Warn(warnings, base::Cat("model ", model.name(),
                             ": Deprecated ModelServerConfig::model_type field used. Prefer "
                             "ModelServerConfig::model_platform."));
    if (!platform.empty()) {
      return absl::InvalidArgumentError(
          "Illegal setting both ModelServerConfig::model_type (deprecated) and "
          "ModelServerConfig::model_platform.");
    }
    if (type != tfs::TENSORFLOW) {
      return absl::InvalidArgumentError(base::Cat("ModelServerConfig::model_type choice ",
                                                  static_cast<int>(type), " not supported."));
    }
    platform = kTensorFlow;
  }
  if (platform.empty()) {
    return absl::InvalidArgumentError(
        "Illegal setting neither ModelServerConfig::model_type (deprecated) nor "
        "ModelServerConfig::model_platform.");
  }
  if (!platforms.contains(platform)) {
    return absl::InvalidArgumentError(
        base::Cat("Model ", model.name(), " requests unsupported platform ", platform));
  }
  return platform;
}

// Where the model lies on this machine: "/m" of "/m", "file:///m" and "file://localhost/m".
absl::StatusOr<std::string> LocalBasePath(const std::string& name, const std::string& base_path) {
  std::string_view path = base_path;
  for (const std::string_view here : {"file://localhost/", "file:///"}) {
    if (path.starts_with(here)) path.remove_prefix(here.size() - 1);
  }
  if (path.starts_with('/')) return std::string(path);
  if (path.find("://") != std::string_view::npos) {
    return absl::InvalidArgumentError(base::Cat(
        "model ", name, " has base_path ", base_path,
        ", but remote stores are not supported yet; copy the model to a local directory"));
  }
  return absl::InvalidArgumentError(base::Cat(
      "Expected model ", name, " to have an absolute path or URI; got base_path()=", base_path));
}

VersionPolicy Policy(const tfs::FileSystemStoragePathSourceConfig::ServableVersionPolicy& policy) {
  if (policy.has_all()) return {.kind = VersionPolicy::Kind::kAll};
  if (!policy.has_specific()) return {.latest = std::max(1u, policy.latest().num_versions())};
  VersionPolicy specific{.kind = VersionPolicy::Kind::kSpecific};
  const std::set<int64_t> versions(policy.specific().versions().begin(),
                                   policy.specific().versions().end());
  specific.specific.assign(versions.begin(), versions.end());
  return specific;
}

absl::StatusOr<ModelEntry> Entry(const tfs::ModelConfig& model, const Platforms& platforms,
                                 Warnings* warnings) {
  if (model.name().empty()) {
    return absl::InvalidArgumentError(base::Cat("the model with base_path ", model.base_path(),
                                                " has no name; no client could reach it"));
  }
  ModelEntry entry{.name = model.name()};
  ASSIGN_OR_RETURN(entry.base_path, LocalBasePath(model.name(), model.base_path()));
  ASSIGN_OR_RETURN(entry.platform, Platform(model, platforms, warnings));
  entry.policy = Policy(model.model_version_policy());
  entry.labels.insert(model.version_labels().begin(), model.version_labels().end());
  ASSIGN_OR_RETURN(entry.logging, ToRequestLogging(model));
  return entry;
}

}  // namespace

absl::StatusOr<std::vector<ModelEntry>> ToModelEntries(const tfs::ModelServerConfig& config,
                                                       const Platforms& platforms,
                                                       Warnings* warnings) {
  if (config.has_custom_model_config()) {
    return absl::InvalidArgumentError("ModelServer does not yet support custom model config.");
  }
  std::vector<ModelEntry> entries;
  std::set<std::string> names;
  for (const tfs::ModelConfig& model : config.model_config_list().config()) {
    if (!names.insert(model.name()).second) {
      return absl::InvalidArgumentError(
          base::Cat("Illegal to list model ", model.name(), " multiple times in config list"));
    }
    ASSIGN_OR_RETURN(ModelEntry entry, Entry(model, platforms, warnings));
    entries.push_back(std::move(entry));
  }
  return entries;
}

absl::StatusOr<std::vector<ModelEntry>> LoadModels(const ServerOptions& options,
                                                   const Platforms& platforms, Warnings* warnings,
                                                   Unset unset, FileTexts* texts) {
  tfs::ModelServerConfig config;
  if (!options.model_config_file.empty()) {
    RETURN_IF_ERROR(ReadTextProto("model_config_file", options.model_config_file, texts, &config));
    if (config.config_case() == tfs::ModelServerConfig::CONFIG_NOT_SET) {
      std::string text = base::Cat(options.model_config_file,
                                   ": it is empty, so it names no model; to serve none on purpose, "
                                   "write model_config_list {}");
      if (unset == Unset::kError) return absl::InvalidArgumentError(text);
      Warn(warnings, std::move(text));
    }
  } else {
    tfs::ModelConfig* model = config.mutable_model_config_list()->add_config();
    model->set_name(options.model_name);
    model->set_base_path(options.model_base_path);
    model->set_model_platform(std::string(kTensorFlow));
  }
  return ToModelEntries(config, platforms, warnings);
}

}  // namespace tensord::config
