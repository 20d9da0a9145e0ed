// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

// What the operator asks for, as plain values: whoever reads flags and files fills these in.
namespace tensord::models {

// Which of the versions that exist should live.
struct VersionPolicy {
  enum class Kind : uint8_t { kLatest, kAll, kSpecific };
  Kind kind = Kind::kLatest;
  uint32_t latest = 1;            // kLatest: how many; 0 means 1, as in the original.
  std::vector<int64_t> specific;  // kSpecific: these and no others; empty unloads all.

  bool operator==(const VersionPolicy&) const = default;
};

// What a worker is told at its start. Zero means that the default of the worker holds. Changing any
// of these for a model that serves replaces its workers one version at a time, old ones last.
struct WorkerSettings {
  int executors = 0;              // Runs at a time in one worker.
  int intra_op_threads = 0;       // Of TensorFlow, for one op.
  int inter_op_threads = 0;       // Of TensorFlow; -1 keeps a run in its executor.
  bool warm_up = true;            // Run something synthetic before the version becomes visible...
  bool recorded_warm_up = true;   // ...unless it comes with recorded requests to be replayed.
  bool warm_up_strict = false;    // A recorded request that fails fails the load, as the original.
  std::vector<int> warm_up_rows;  // Batch sizes of synthetic warm-up runs; empty: the worker picks.
  int warm_up_repeats = 0;        // Times each recorded request is played.
  uint64_t worker_memory_bytes_max = 0;  // A worker estimated larger is refused.
  uint32_t runtime = 0;        // Number of the runtime environment (oneDNN on or off, XLA flags).
  bool prefer_tflite = false;  // Of a version that has both forms, serve model.tflite.

  bool operator==(const WorkerSettings&) const = default;
};

struct ModelConfig {
  std::string name;
  std::string base_path;  // Absolute or a URI; holds one directory for each version.
  std::string platform = "tensorflow";
  VersionPolicy policy;
  std::map<std::string, int64_t> labels;  // Label to version number.
  int replicas = 1;                       // Workers a version; a stateful model gets one.
  uint64_t memory_bytes_max = 0;          // All workers of this model together; 0: no limit.
  WorkerSettings worker;

  bool operator==(const ModelConfig&) const = default;
};

// The files of one version, as they were found when its load was decided.
struct VersionFiles {
  std::string directory = {};  // "/models/half/00000123"
  // Tells contents of one version number apart: files that replaced failed ones, another base path,
  // other worker settings. Never given out twice by one catalog.
  uint64_t generation = 0;
  uint64_t bytes = 0;  // Sum of the file sizes.
  uint64_t memory_estimate_bytes =
      0;                       // What the ledger holds for each worker until it is measured.
  uint64_t warm_up_bytes = 0;  // Of recorded requests; 0: there are none.
  bool tflite = false;         // Its model.tflite is to be served, not its SavedModel.
  // The text of engine::kBatchingParametersFile; none when it is not there or cannot be read. The
  // worker brings what decides how calls are batched; this is known before it is warmed up.
  std::optional<std::string> batching_parameters = {};
};

// The same for all models.
struct Options {
  // Below zero and zero: look once at the start and at each SetModels, as long as it takes until
  // what is there is complete. The original never looks when below zero, and so never serves.
  absl::Duration poll_period = absl::Seconds(1);
  int load_retries_max = 5;  // After the first failure, where another try may go better.
  // The longest pause between two tries; the first is repeated after kLoadRetryFirst already.
  absl::Duration load_retry_interval = absl::Minutes(1);
  // Lets a reload assign a label to a version that is not available. A new label then waits for its
  // version; a label that moves stays where it is until its new version is available.
  bool allow_labels_for_unavailable = false;
  uint64_t memory_bytes_max = 0;  // All workers of all models; 0: no limit.
  // A version whose directory is gone from a base path that can be listed is unloaded, as in the
  // original. Else what serves is kept until something takes over.
  bool unload_missing = false;
};

}  // namespace tensord::models
