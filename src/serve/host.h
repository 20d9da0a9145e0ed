// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/server_options.h"
#include "fleet/fleet.h"
#include "loop/loop_set.h"
#include "models/catalog.h"
#include "models/scanner.h"
#include "obs/request_metrics.h"
#include "serve/load_plan.h"
#include "serve/network.h"
#include "serve/version_home.h"

namespace tensord::serve {

// Carries out what the catalog decides: starts and stops workers through the fleet, joins them to
// their version's queue on its home loop, and shows every loop what is served.
//
// Threads: the control loop; what runs on a home loop says so. Lifetime: loops, fleet, network and
// metrics outlive it, and it outlives the catalog.
class Host final : public models::CatalogHost {
 public:
  struct Setup {
    loop::LoopSet* loops = nullptr;
    fleet::Fleet* fleet = nullptr;
    Network* network = nullptr;
    obs::RequestMetrics* metrics = nullptr;
    front::RequestLogs* request_logs = nullptr;
    const config::ServerOptions* options = nullptr;
    const config::Platforms* platforms = nullptr;  // Outlive the host.
    std::shared_ptr<const RunTimeBook> run_times;  // As the last life left them; never null.
    Machine machine;
  };

  explicit Host(Setup setup);
  ~Host() override;

  // REQUIRES: before the catalog's first list.
  void Attach(models::Catalog* catalog, models::Scanner* scanner) {
    catalog_ = catalog;
    scanner_ = scanner;
  }
  // Of models whose workers start from now on.
  void SetSettings(SettingsByModel settings) { settings_ = std::move(settings); }
  const SettingsByModel& settings() const { return settings_; }

  // CatalogHost.
  void Start(const fleet::WorkerKey& key, const models::VersionFiles& files,
             const models::ModelConfig& config) override;
  void Stop(const fleet::WorkerKey& key) override;
  void Publish(std::shared_ptr<const models::Snapshot> snapshot) override;
  void Watch(std::vector<models::WatchedPath> paths) override;

  // The queues of all loops, gathered by messages.
  void CollectStats(std::function<void(std::vector<VersionStats>)> done);

 private:
  class Observer;

  int HomeOf(const std::string& model) const;
  VersionSetup SetupOf(const fleet::WorkerKey& key, const config::PlatformSettings& platform);
  std::shared_ptr<sched::ModelBytes> BytesOf(const std::string& model);
  void DropEnded(const models::Snapshot& snapshot);

  const Setup setup_;
  models::Catalog* catalog_ = nullptr;
  models::Scanner* scanner_ = nullptr;
  SettingsByModel settings_;
  uint64_t workers_started_ = 0;
  std::map<fleet::WorkerKey, VersionId> workers_;  // Started and not yet over.
  std::set<VersionId> serving_;                    // That may have a queue somewhere.
  // What models' calls may hold in all beyond their reserves; outlives the queues.
  base::ByteBudget shared_bytes_;
  std::map<std::string, std::shared_ptr<sched::ModelBytes>> model_bytes_;
  std::vector<std::unique_ptr<VersionHome>> homes_;          // One a loop, touched there only.
  std::vector<std::shared_ptr<models::Mailbox>> mailboxes_;  // One a loop, for reading threads.
  std::set<VersionId> died_loading_;  // A worker did, perhaps of its warm-up: the next has none.
};

}  // namespace tensord::serve
