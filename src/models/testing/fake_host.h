// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "models/catalog.h"

namespace tensord::models {

// Remembers what the catalog asked for; the test plays the workers.
class FakeHost final : public CatalogHost {
 public:
  void Start(const WorkerKey& key, const VersionFiles& files, const ModelConfig& config) override {
    asked.push_back(base::Cat("start ", ToString(key)));
    started[key] = files;
    configs[key] = config;
    if (on_start) on_start(key);
  }
  void Stop(const WorkerKey& key) override { asked.push_back(base::Cat("stop ", ToString(key))); }
  void Publish(std::shared_ptr<const Snapshot> next) override {
    snapshot = std::move(next);
    ++published;
  }
  void Watch(std::vector<WatchedPath> paths) override {
    watched = std::move(paths);
    ++watches;
  }

  // What was asked since the last call.
  std::vector<std::string> Asked() { return std::exchange(asked, {}); }

  std::vector<std::string> asked;
  std::map<WorkerKey, VersionFiles> started;
  std::map<WorkerKey, ModelConfig> configs;
  std::function<void(const WorkerKey&)> on_start;
  std::shared_ptr<const Snapshot> snapshot;
  int published = 0;
  std::vector<WatchedPath> watched;
  int watches = 0;
};

}  // namespace tensord::models
