// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/check_models.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"

namespace tensord::models {
namespace {

// scheme://, with a scheme as RFC 3986 has it.
bool IsUri(std::string_view path) {
  const size_t colon = path.find("://");
  if (colon == std::string_view::npos || colon == 0) return false;
  if (std::isalpha(static_cast<unsigned char>(path[0])) == 0) return false;
  return std::ranges::all_of(path.substr(0, colon), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '-' || c == '.';
  });
}

absl::Status CheckModel(const ModelConfig& model) {
  if (model.name.empty()) {
    return absl::InvalidArgumentError("A model in the config list has no name.");
  }
  if (!model.base_path.starts_with('/') && !IsUri(model.base_path)) {
    return absl::InvalidArgumentError(
        base::Cat("Expected model ", model.name,
                  " to have an absolute path or URI; got base_path()=", model.base_path));
  }
  if (model.base_path.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(
        base::Cat("The base path of model ", model.name, " holds a NUL byte."));
  }
  if (model.platform.empty()) {
    return absl::InvalidArgumentError(
        base::Cat("Illegal setting neither ModelServerConfig::model_type (deprecated) nor "
                  "ModelServerConfig::model_platform. Give model ",
                  model.name, " the platform \"tensorflow\"."));
  }
  return absl::OkStatus();
}

const ModelConfig* Named(const std::vector<ModelConfig>& models, const std::string& name) {
  const auto at = std::ranges::find(models, name, &ModelConfig::name);
  return at == models.end() ? nullptr : &*at;
}

bool Available(const Snapshot& snapshot, const std::string& model, int64_t number) {
  const auto at = snapshot.models.find(model);
  if (at == snapshot.models.end()) return false;
  const VersionEntry* version = at->second->Version(number);
  return version != nullptr && version->state == State::kAvailable;
}

}  // namespace

absl::Status CheckModels(const std::vector<ModelConfig>& models,
                         const std::vector<ModelConfig>& now) {
  if (models.size() > limits::kModelsMax) {
    return absl::InvalidArgumentError(base::Cat("The config list has ", models.size(),
                                                " models; at most ", limits::kModelsMax,
                                                " can be served."));
  }
  std::map<std::string, std::string> platforms;
  for (const ModelConfig& model : now) platforms[model.name] = model.platform;
  std::set<std::string> names;
  for (const ModelConfig& model : models) {
    if (!names.insert(model.name).second) {
      return absl::InvalidArgumentError(
          base::Cat("Illegal to list model ", model.name, " multiple times in config list"));
    }
  }
  for (const ModelConfig& model : models) {
    const auto before = platforms.find(model.name);
    if (before != platforms.end() && before->second != model.platform && !model.platform.empty()) {
      return absl::InvalidArgumentError(base::Cat(
          "Illegal to change a model's platform. For model ", model.name, " platform was ",
          before->second, " and new platform requested is ", model.platform));
    }
    RETURN_IF_ERROR(CheckModel(model));
  }
  return absl::OkStatus();
}

absl::Status CheckLabels(const std::vector<ModelConfig>& models,
                         const std::vector<ModelConfig>& now, const Snapshot& snapshot,
                         bool allow_unavailable) {
  if (allow_unavailable) return absl::OkStatus();
  for (const ModelConfig& model : models) {
    const ModelConfig* before = model.labels.empty() ? nullptr : Named(now, model.name);
    if (before == nullptr) continue;
    for (const auto& [label, number] : model.labels) {
      const auto old = before->labels.find(label);
      if (old != before->labels.end() && old->second == number) continue;
      if (Available(snapshot, model.name, number)) continue;
      return absl::FailedPreconditionError(
          base::Cat("Request to assign label to version ", number, " of model ", model.name,
                    ", which is not currently available for inference. Label \"", label,
                    "\" can be assigned once the version is AVAILABLE, or start the server with "
                    "--allow_version_labels_for_unavailable_models."));
    }
  }
  return absl::OkStatus();
}

std::string LocalPath(const std::string& base_path) {
  constexpr std::string_view kFile = "file://";
  return base_path.starts_with(kFile) ? base_path.substr(kFile.size()) : base_path;
}

}  // namespace tensord::models
