// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "config/access_rules.h"
#include "config/file_texts.h"
#include "config/platforms.h"
#include "config/request_logging.h"
#include "config/server_options.h"

namespace tensorflow::serving {
class ModelServerConfig;
}

// The text-format files behind options, as plain structs. Each loader says what is wrong by file,
// line and column. Called by the supervisor before anything starts, and by the front; these block
// on the disk, so never on a loop that serves. `texts`: see file_texts.h; null: read. `warnings`
// are lines for the log, about what a file says and we do not do; null where nobody reads them.
namespace tensord::config {

// ---- --model_config_file, or --model_name and --model_base_path ---------------------------------

// Which of the versions found are served.
struct VersionPolicy {
  enum class Kind { kLatest, kAll, kSpecific };
  Kind kind = Kind::kLatest;
  uint32_t latest = 1;              // kLatest: the newest so many, at least 1.
  std::vector<int64_t> specific{};  // kSpecific: these, sorted, none twice.

  bool operator==(const VersionPolicy&) const = default;
};

// One model as configured.
struct ModelEntry {
  std::string name{};
  std::string base_path{};              // Absolute, local.
  std::string platform = "tensorflow";  // One of the platforms that are configured.
  VersionPolicy policy{};
  std::map<std::string, int64_t> labels{};
  std::optional<RequestLogging> logging{};

  bool operator==(const ModelEntry&) const = default;
};

// What a file means that holds neither a list of models nor anything else.
enum class Unset : uint8_t {
  kNoModels,  // At a start: they come by RPC, or when the file is written.
  kError,     // Later: it is being written, or its text was lost; nothing may be unloaded for it.
};
// In the order of the file; no name twice.
absl::StatusOr<std::vector<ModelEntry>> LoadModels(const ServerOptions& options,
                                                   const Platforms& platforms, Warnings* warnings,
                                                   Unset unset = Unset::kNoModels,
                                                   FileTexts* texts = nullptr);
// The same for a configuration that came over the network. An unset configuration is an empty list.
// INVALID_ARGUMENT in the original's words.
absl::StatusOr<std::vector<ModelEntry>> ToModelEntries(
    const tensorflow::serving::ModelServerConfig& config, const Platforms& platforms,
    Warnings* warnings);

// ---- --monitoring_config_file -------------------------------------------------------------------

struct Monitoring {
  bool prometheus = false;
  std::string path = "/monitoring/prometheus/metrics";

  bool operator==(const Monitoring&) const = default;
};

absl::StatusOr<Monitoring> LoadMonitoring(const ServerOptions& options, FileTexts* texts = nullptr);

// ---- --model_settings_file ----------------------------------------------------------------------

// Settings of one model that the original has no place for. Unset: the server decides.
struct ModelSettings {
  enum class OneDnn { kAuto, kOn, kOff };

  std::optional<int> executors{};
  std::optional<int> intra_op_threads{};
  std::optional<int> inter_op_threads{};
  std::optional<int> replicas{};
  std::vector<int64_t> warm_up_rows{};
  std::optional<bool> synthetic_warm_up{};
  std::optional<bool> warm_up_strict{};
  OneDnn onednn = OneDnn::kAuto;
  std::vector<std::string> op_libraries{};             // Absolute paths.
  std::optional<uint64_t> memory_limit_bytes{};        // Of one worker.
  std::optional<uint64_t> model_memory_limit_bytes{};  // Of all workers of the model.
  std::optional<int64_t> run_timeout_ms{};
  std::optional<int64_t> load_timeout_ms{};
  std::optional<bool> batching_enabled{};
  std::optional<int64_t> batch_rows_max{};
  std::optional<int64_t> batch_timeout_micros{};
  std::optional<bool> runs_in_caller{};
  std::optional<bool> sandbox{};
  std::optional<int> sandbox_stage{};  // 1 or 2.

  bool operator==(const ModelSettings&) const = default;
};

// By model name; empty without a file.
absl::StatusOr<std::map<std::string, ModelSettings>> LoadModelSettings(const ServerOptions& options,
                                                                       FileTexts* texts = nullptr);

// ---- --access_rules_file ------------------------------------------------------------------------

// As the one of access_rules.h.
absl::StatusOr<std::optional<AccessRules>> LoadAccessRules(const ServerOptions& options,
                                                           FileTexts* texts);

// ---- All of them --------------------------------------------------------------------------------

// Loads every file that the options name and drops the result: the start-up check.
absl::Status CheckFiles(const ServerOptions& options, Warnings* warnings);

}  // namespace tensord::config
