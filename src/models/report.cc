// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/report.h"

#include <algorithm>

#include "base/text.h"
#include "obs/log.h"

namespace tensord::models {
namespace {

std::string Text(const absl::Status& status) {
  return base::Cat(std::string(absl::StatusCodeToString(status.code())), ": ",
                   base::Message(status));
}

void LogVersion(const std::string& model, const VersionEntry* before, const VersionEntry& after,
                absl::Time now) {
  const std::string_view was = before == nullptr ? "new" : StateName(before->state);
  const bool moved =
      before == nullptr || before->state != after.state || before->generation != after.generation;
  if (moved && before != nullptr && before->state == after.state && after.status.ok()) {
    obs::Info("model {}, version {}: {} with new files or settings", model, after.number,
              StateName(after.state));
  } else if (moved && before != nullptr && after.status.ok()) {
    obs::Info("model {}, version {}: {} -> {} after {}", model, after.number, was,
              StateName(after.state), absl::FormatDuration(now - before->since));
  } else if (moved && after.status.ok()) {
    obs::Info("model {}, version {}: {} ({})", model, after.number, StateName(after.state),
              after.directory);
  } else if (!after.status.ok() && (moved || before->status != after.status)) {
    obs::Warn("model {}, version {}: {} -> {}: {}", model, after.number, was,
              StateName(after.state), Text(after.status));
  }
  if (after.state != State::kAvailable) return;
  if (moved && after.warm_up_runs > 0) {
    obs::Info("model {}, version {}: loaded in {}, warmed up with {} in {} ({} runs)", model,
              after.number, absl::FormatDuration(after.load_time), after.warm_up_source,
              absl::FormatDuration(after.warm_up_time), after.warm_up_runs);
  }
  static const std::vector<std::string> kNone;
  LogWarnings(base::Cat(model, ", version ", after.number), moved ? kNone : before->warnings,
              after.warnings);
}

}  // namespace

void LogChanges(const std::string& model, const ModelEntry* before, const ModelEntry& after,
                absl::Time now) {
  const absl::Status was = before == nullptr ? absl::OkStatus() : before->source;
  const bool news = after.looked_at && (before == nullptr || !before->looked_at);
  if (after.looked_at && !after.source.ok() && (news || was != after.source)) {
    obs::Warn("model {}: {}{}", model, Text(after.source),
              after.Latest() == nullptr ? "" : "; what serves serves on");
  } else if (after.source.ok() && !was.ok() && before != nullptr && before->looked_at) {
    obs::Info("model {}: base path {} is fine again", model, after.base_path);
  }
  for (const VersionEntry& version : after.versions) {
    LogVersion(model, before == nullptr ? nullptr : before->Version(version.number), version, now);
  }
}

void LogWarnings(const std::string& model, const std::vector<std::string>& before,
                 const std::vector<std::string>& after) {
  for (const std::string& warning : after) {
    if (std::ranges::find(before, warning) == before.end()) {
      obs::Warn("model {}: {}", model, warning);
    }
  }
}

absl::Status DidNotBecomeAvailable(std::string_view what,
                                   const std::map<std::string, std::string>& errors) {
  if (errors.empty()) return absl::OkStatus();
  std::string text = base::Cat(errors.size(), " ", what, " did not become available: {");
  for (const auto& [model, error] : errors) text += base::Cat(error, ", ");
  return absl::UnknownError(base::Cat(text, "}"));
}

}  // namespace tensord::models
