// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/model_info.h"
#include "fleet/worker_key.h"
#include "models/config.h"
#include "models/source.h"
#include "models/states.h"

// The two sides that Decide compares, as plain values: what should be, and what is.
namespace tensord::models {

struct DesiredModel {
  ModelConfig config;
  std::vector<FoundVersion> found;  // Of the last listing that succeeded; highest first.
  bool listed = false;              // One of this base path has.
  // Where each label points now; a label that moves lags behind the configuration.
  std::map<std::string, int64_t, std::less<>> labels;
};

struct Desired {
  std::map<std::string, DesiredModel> models;
  Options options;
};

enum class WorkerState : uint8_t { kLoading, kLive, kStopping };

struct WorkerRecord {
  fleet::WorkerKey key;
  WorkerState state = WorkerState::kLoading;
  absl::Time since;
  bool restart = false;       // Takes the place of one that died.
  uint64_t memory_bytes = 0;  // Estimated until it is measured.
};

// Why a version ended that should live.
enum class Failure : uint8_t {
  kNone,
  kLoad,       // Could not be loaded, and loading the same files again would not help.
  kTransient,  // Could not be loaded in all tries; another may go better.
  kCrashLoop,  // Kept dying.
  kMemory,     // Does not fit the ledger.
};

// One generation of a version: these files under this configuration.
struct VersionRecord {
  int64_t number = 0;
  VersionFiles files;
  uint64_t fingerprint = 0;  // Of the files.
  // The same as the last listing of its base path had it; 0: incomplete or gone. Other files than
  // those it was begun with are not loaded beside them.
  uint64_t disk_fingerprint = 0;
  ModelConfig config;  // What its workers are started with.
  State state = State::kStart;
  absl::Time since;
  // Why it does not serve; OK while it does.
  absl::Status status;
  // The last failure or death, also while another worker serves on.
  absl::Status last_error;
  Failure failure = Failure::kNone;  // kEnd only.
  bool was_available = false;        // In this generation.
  std::vector<WorkerRecord> workers;
  int live_max = 0;       // Workers that lived at the same time; fewer now means that some died.
  int load_failures = 0;  // In a row.
  absl::Time not_before = absl::InfinitePast();  // The pause after a failure or death.
  std::vector<absl::Time> deaths;                // Those within kDeathsWindow.
  int restarts = 0;
  std::optional<engine::ModelInfo> info;  // Once loaded.
  std::shared_ptr<void> handle;           // Opaque; the host's.

  bool FilesStand() const { return disk_fingerprint == fingerprint; }
  bool stateful() const { return info.has_value() && !info->stateful_reason.empty(); }
  int live() const;
  // Those that load or live.
  int Running() const;
};

// Whether workers started under one configuration are right for the other.
bool SameSpec(const ModelConfig& a, const ModelConfig& b);

// Workers of one version that the configuration asks for.
int ReplicasWanted(const VersionRecord& record, const ModelConfig& config);

struct ObservedModel {
  // One record for each generation that is not over, and the last ones that are. Any order.
  std::vector<VersionRecord> versions;
};

struct Observed {
  std::map<std::string, ObservedModel> models;
  uint64_t last_generation = 0;

  // The record and the worker of that key; nullptr when there is none.
  VersionRecord* FindWorker(const fleet::WorkerKey& key, WorkerRecord** worker);
};

}  // namespace tensord::models
