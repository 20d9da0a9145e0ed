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
#include "config/file_texts.h"
#include "config/server_options.h"

// How versions are loaded and run, by the platform that a model names: what the session, batching
// and warm-up flags say of "tensorflow", or the file behind --platform_config_file, which replaces
// them all. Read once, at the start.
namespace tensord::config {

using Warnings = std::vector<std::string>;

// Unset: the operator left it to the server.
struct BatchingParameters {
  std::optional<int64_t> max_batch_size{};        // >= 1
  std::optional<int64_t> batch_timeout_micros{};  // >= 0
  std::optional<int64_t> max_enqueued_batches{};  // >= 1
  std::optional<int64_t> num_batch_threads{};     // >= 1
  std::vector<int64_t> allowed_batch_sizes{};     // >= 1, ascending; the last is the largest run.
  bool pad_variable_length_inputs = false;
  bool enable_large_batch_splitting = false;
  std::optional<int64_t> max_execution_batch_size{};  // >= 1; only with splitting.

  bool operator==(const BatchingParameters&) const = default;
};

// The text of a BatchingParameters file, of the operator or of a version directory. `where` names
// it in errors.
absl::StatusOr<BatchingParameters> ParseBatchingParameters(std::string_view text,
                                                           std::string_view where,
                                                           Warnings* warnings);

struct PlatformSettings {
  // A serialized tensorflow.ConfigProto with what the operator set, and nothing else.
  std::string session_config{};
  std::vector<std::string> saved_model_tags = {"serve"};  // Equal to those of the graph to load.
  std::optional<BatchingParameters> batching{};           // Set: batching was asked for.
  // Parameters of a version are those in its directory, or none; all versions' thread count is that
  // of `batching`.
  bool per_model_batching = false;
  bool warm_up = true;            // Replay recorded requests.
  int warm_up_repeats = 0;        // Of each; 0: once.
  bool bfloat16 = false;          // oneDNN may compute in bfloat16.
  bool session_metadata = false;  // Profiles name model and version.
  bool prefer_tflite = false;     // Of a version that has both forms, serve model.tflite.
  int tflite_interpreters = 0;    // Of such a version; 0: chosen.

  bool operator==(const PlatformSettings&) const = default;
};

using Platforms = std::map<std::string, PlatformSettings>;

// In the original's order of checks and in its words. `texts`: see file_texts.h; null: the files
// are read.
absl::StatusOr<Platforms> LoadPlatforms(const ServerOptions& options, Warnings* warnings,
                                        FileTexts* texts = nullptr);

}  // namespace tensord::config
