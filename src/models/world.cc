// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/world.h"

#include <algorithm>

#include "base/limits.h"

namespace tensord::models {

int VersionRecord::live() const {
  return static_cast<int>(std::ranges::count(workers, WorkerState::kLive, &WorkerRecord::state));
}

int VersionRecord::Running() const {
  return static_cast<int>(workers.size()) -
         static_cast<int>(
             std::ranges::count(workers, WorkerState::kStopping, &WorkerRecord::state));
}

bool SameSpec(const ModelConfig& a, const ModelConfig& b) {
  return a.base_path == b.base_path && a.platform == b.platform && a.worker == b.worker;
}

int ReplicasWanted(const VersionRecord& record, const ModelConfig& config) {
  // Until the first worker has told whether the graph keeps state, there is one.
  if (!record.info.has_value() || record.stateful()) return 1;
  return std::clamp(config.replicas, 1, limits::kReplicasMax);
}

VersionRecord* Observed::FindWorker(const fleet::WorkerKey& key, WorkerRecord** worker) {
  const auto model = models.find(key.model);
  if (model == models.end()) return nullptr;
  for (VersionRecord& record : model->second.versions) {
    if (record.number != key.version) continue;
    const auto at = std::ranges::find(record.workers, key, &WorkerRecord::key);
    if (at == record.workers.end()) continue;
    *worker = &*at;
    return &record;
  }
  return nullptr;
}

}  // namespace tensord::models
