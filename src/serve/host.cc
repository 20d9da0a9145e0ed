// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/host.h"

#include <functional>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "obs/log.h"

namespace tensord::serve {
namespace {

channel::OneDnn OneDnnOf(uint32_t runtime) {
  if (runtime == kRuntimeOneDnnOn) return channel::OneDnn::kOn;
  if (runtime == kRuntimeOneDnnOff) return channel::OneDnn::kOff;
  return channel::OneDnn::kAuto;
}

// The first line of a worker's report that says a layer is not there, or not tight; "" when all
// are.
std::string MissingLayer(const engine::ModelInfo& info) {
  for (const std::string& line : info.sandbox) {
    if (line.find("not applied") != std::string::npos || line.find("NOT") != std::string::npos) {
      return line;
    }
  }
  return "";
}

bool MayServe(const models::VersionEntry& version) {
  return version.state != models::State::kEnd && version.handle != nullptr;
}

}  // namespace

// Hears of one worker on its home loop, and brings it to the version there and to the catalog.
class Host::Observer final : public fleet::WorkerObserver {
 public:
  Observer(Host* host, VersionHome* home, fleet::WorkerKey key, VersionId id, VersionSetup setup,
           std::string directory)
      : host_(host),
        home_(home),
        key_(std::move(key)),
        id_(std::move(id)),
        setup_(std::move(setup)),
        directory_(std::move(directory)) {}

  void OnLoaded(fleet::WorkerHandle& worker, const engine::ModelInfo& info) override {
    if (host_->setup_.options->sandbox == "on" && !MissingLayer(info).empty()) {
      refused_ = absl::FailedPreconditionError(
          base::Cat("--sandbox=on, but this machine does not allow all of it: ", MissingLayer(info),
                    "; --sandbox=best_effort goes on without"));
      return worker.Stop();
    }
    absl::StatusOr<std::shared_ptr<front::Servable>> servable =
        home_->AddWorker(id_, &worker, info, std::move(setup_));
    if (!servable.ok()) {
      refused_ = servable.status();
      return worker.Stop();
    }
    loads().CountLoaded({.model = key_.model,
                         .path = directory_,
                         .load_time = absl::Microseconds(info.load_microseconds),
                         .warm_up_time = absl::Microseconds(info.warm_up_microseconds),
                         .warm_up_runs = info.warm_up_runs});
    ToCatalog([info, handle = *std::move(servable)](models::Catalog* catalog,
                                                    const fleet::WorkerKey& key) {
      catalog->OnLoaded(key, info, handle);
    });
  }

  void OnFree() override { home_->OnWorkerFree(id_); }

  void OnEnded(fleet::WorkerHandle* worker, End end, const absl::Status& reason) override {
    if (worker != nullptr) home_->RemoveWorker(id_, worker);
    if (!refused_.ok() || end == End::kLoadFailed) {
      const absl::Status why = refused_.ok() ? reason : refused_;
      loads().CountLoadFailed(key_.model, directory_);
      return ToCatalog([why](models::Catalog* catalog, const fleet::WorkerKey& key) {
        catalog->OnLoadFailed(key, why);
      });
    }
    loads().CountEvent(key_.model, end == End::kStopped ? "stopped" : "died");
    if (end == End::kStopped) {
      return ToCatalog(
          [](models::Catalog* catalog, const fleet::WorkerKey& key) { catalog->OnStopped(key); });
    }
    ToCatalog(
        [text = std::string(base::Message(reason))](
            models::Catalog* catalog, const fleet::WorkerKey& key) { catalog->OnDied(key, text); });
  }

 private:
  obs::LoadMetrics& loads() { return host_->setup_.metrics->loads(); }
  void ToCatalog(std::function<void(models::Catalog*, const fleet::WorkerKey&)> tell) {
    loop::PostOrDie(host_->setup_.loops->control(), [host = host_, key = key_, tell] {
      if (host->catalog_ != nullptr) tell(host->catalog_, key);
    });
  }

  Host* const host_;
  VersionHome* const home_;
  const fleet::WorkerKey key_;
  const VersionId id_;
  VersionSetup setup_;
  const std::string directory_;
  absl::Status refused_;  // Loaded, but not taken.
};

Host::Host(Setup setup) : setup_(std::move(setup)) {
  for (int i = 0; i < setup_.loops->size(); ++i) {
    homes_.push_back(std::make_unique<VersionHome>(setup_.loops->at(i)));
  }
}

int Host::HomeOf(const std::string& model) const {
  // All versions of a model live on one loop, so that a swap moves no connection's calls.
  return static_cast<int>(std::hash<std::string>()(model) %
                          static_cast<size_t>(setup_.loops->size()));
}

VersionSetup Host::SetupOf(const fleet::WorkerKey& key) {
  VersionSetup setup;
  setup.queue.model = key.model;
  setup.queue.version = key.version;
  PlanBatching(setup_.batching, SettingsOf(settings_, key.model), &setup.queue);
  setup.metrics = setup_.metrics;
  setup.request_log = setup_.request_logs->Of(key.model);
  return setup;
}

void Host::Start(const fleet::WorkerKey& key, const models::VersionFiles& files,
                 const models::ModelConfig& config) {
  const int home = HomeOf(key.model);
  const VersionId id{key.model, key.version, files.generation};
  workers_[key] = id;
  fleet::LaunchSpec spec;
  spec.key = key;
  spec.load = PlanLoad(key, files, config, SettingsOf(settings_, key.model), *setup_.options,
                       setup_.machine, workers_started_++);
  spec.onednn = OneDnnOf(key.runtime);
  obs::Info("model {}, version {}: loading {}", key.model, key.version, files.directory);
  setup_.fleet->Launch(std::move(spec), setup_.loops->at(home),
                       std::make_unique<Observer>(this, homes_[static_cast<size_t>(home)].get(),
                                                  key, id, SetupOf(key), files.directory));
  setup_.metrics->loads().CountEvent(key.model, "started");
}

void Host::Stop(const fleet::WorkerKey& key) {
  const auto at = workers_.find(key);
  if (at == workers_.end()) return;
  const VersionId id = at->second;
  workers_.erase(at);
  bool last = true;
  for (const auto& [other, other_id] : workers_) last = last && other_id != id;
  if (!last) return setup_.fleet->Stop(key);
  // First every loop forgets the version, then what is queued is answered, then the worker goes.
  // A call that was posted before a loop forgot arrives before the drain begins.
  VersionHome* home = homes_[static_cast<size_t>(HomeOf(key.model))].get();
  loop::EventLoop& home_loop = setup_.loops->at(HomeOf(key.model));
  setup_.network->Publish(catalog_->snapshot(), [this, home, &home_loop, id, key] {
    loop::PostOrDie(home_loop, [this, home, id, key] {
      home->Drain(id, [this, key] {
        loop::PostOrDie(setup_.loops->control(), [this, key] { setup_.fleet->Stop(key); });
      });
    });
  });
}

void Host::Publish(std::shared_ptr<const models::Snapshot> snapshot) {
  DropEnded(*snapshot);
  setup_.network->Publish(std::move(snapshot), [] {});
}

// A generation that serves nowhere any more (its crash loop ended it) lets go of what still waits.
void Host::DropEnded(const models::Snapshot& snapshot) {
  std::set<VersionId> serving;
  for (const auto& [name, model] : snapshot.models) {
    for (const models::VersionEntry& version : model->versions) {
      if (MayServe(version)) serving.insert({name, version.number, version.generation});
    }
    // These drain behind new files or settings of the same version; Stop ends them.
    for (const auto& [number, generation] : model->unloading) {
      serving.insert({name, number, generation});
    }
  }
  for (const VersionId& id : serving_) {
    if (serving.contains(id)) continue;
    VersionHome* home = homes_[static_cast<size_t>(HomeOf(id.model))].get();
    setup_.loops->OnEach(
        [](int) {},
        [this, home, id] {
          loop::PostOrDie(setup_.loops->at(HomeOf(id.model)), [home, id] {
            home->Drop(id, absl::UnavailableError(base::Cat("version ", id.version, " of model ",
                                                            id.model, " is not served any more")));
          });
        });
  }
  serving_ = std::move(serving);
}

void Host::Watch(std::vector<models::WatchedPath> paths) { scanner_->Watch(std::move(paths)); }

void Host::CollectStats(std::function<void(std::vector<VersionStats>)> done) {
  auto parts = std::make_shared<std::vector<std::vector<VersionStats>>>(homes_.size());
  setup_.loops->OnEach(
      [this, parts](int i) {
        const auto index = static_cast<size_t>(i);
        (*parts)[index] = homes_[index]->Collect();
      },
      [parts, done = std::move(done)] {
        std::vector<VersionStats> all;
        for (std::vector<VersionStats>& part : *parts) {
          std::move(part.begin(), part.end(), std::back_inserter(all));
        }
        done(std::move(all));
      });
}

}  // namespace tensord::serve
