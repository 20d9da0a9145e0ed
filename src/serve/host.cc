// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/host.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "base/status_macros.h"
#include "base/text.h"
#include "obs/log.h"
#include "serve/warm_up.h"
#include "wire/signatures.h"

namespace tensord::serve {
namespace {

channel::OneDnn OneDnnOf(uint32_t runtime) {
  if (runtime == kRuntimeOneDnnOn) return channel::OneDnn::kOn;
  if (runtime == kRuntimeOneDnnOff) return channel::OneDnn::kOff;
  return channel::OneDnn::kAuto;
}

bool MayServe(const models::VersionEntry& version) {
  return version.state != models::State::kEnd && version.handle != nullptr;
}

}  // namespace

// Hears of one worker on its home loop, and brings it to the version there and to the catalog.
class Host::Observer final : public fleet::WorkerObserver {
 public:
  struct Parts {
    Host* host;
    int home;  // The loop's number.
    fleet::WorkerKey key;
    VersionId id;
    VersionSetup setup;
    std::optional<WarmUpPlan> warm_up;
    std::string directory;
    std::optional<int> sandbox_stage;  // As the model's settings ask for.
    bool sandbox_enforced = false;
  };
  explicit Observer(Parts parts)
      : host_(parts.host),
        loop_(host_->setup_.loops->at(parts.home)),
        home_(host_->homes_[static_cast<size_t>(parts.home)].get()),
        mailbox_(host_->mailboxes_[static_cast<size_t>(parts.home)]),
        key_(std::move(parts.key)),
        id_(std::move(parts.id)),
        setup_(std::move(parts.setup)),
        warm_up_plan_(std::move(parts.warm_up)),
        directory_(std::move(parts.directory)),
        sandbox_stage_(parts.sandbox_stage),
        sandbox_enforced_(parts.sandbox_enforced) {}

  void OnLoaded(fleet::WorkerHandle& worker, const engine::ModelInfo& info) override {
    if (setup_.platform != nullptr) {
      const absl::Status batching =
          PlanVersionBatching(*setup_.platform, info.batching_parameters, &setup_.queue);
      if (!batching.ok()) return Refuse(worker, batching);
    }
    if (!warm_up_plan_.has_value()) return Seal(worker, info, 0);
    if (const absl::Status begun = BeginWarmUp(worker, info); !begun.ok()) Refuse(worker, begun);
  }

  void OnFree() override { home_->OnWorkerFree(id_); }

  void OnEnded(fleet::WorkerHandle* worker, End end, const absl::Status& reason) override {
    if (worker != nullptr) home_->RemoveWorker(id_, worker);
    const std::string warming = warm_up_ == nullptr ? "" : warm_up_->now();
    warm_up_.reset();
    if (end == End::kDied && !joined_ && refused_.ok()) return DiedBeforeItServed(warming, reason);
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

  void Refuse(fleet::WorkerHandle& worker, const absl::Status& status) {
    refused_ = status;
    worker.Stop();
  }

  absl::Status BeginWarmUp(fleet::WorkerHandle& worker, const engine::ModelInfo& info) {
    ASSIGN_OR_RETURN(tensor::SignatureList signatures,
                     wire::ParseSignatures(info.signature_def_map));
    // Rows of a model that keeps state are not for joining.
    if (!info.stateful_reason.empty()) warm_up_plan_->rows.clear();
    warm_up_ = std::make_unique<WarmUp>(
        loop_, mailbox_, &worker, std::move(signatures), *std::move(warm_up_plan_),
        [this, &worker, info = engine::ModelInfo(info)](WarmUpReport report) mutable {
          loop_.Defer([spent = std::shared_ptr<WarmUp>(std::move(warm_up_))] {});
          if (!report.status.ok()) return Refuse(worker, report.status);
          info.warm_up_source = "records";
          info.warm_up_runs += report.runs;
          info.warm_up_microseconds +=
              static_cast<uint64_t>(absl::ToInt64Microseconds(report.time));
          for (std::string& line : report.warnings) info.warnings.push_back(std::move(line));
          std::ranges::move(report.run_times, std::back_inserter(info.run_times));
          Seal(worker, std::move(info), report.records);
        });
    return absl::OkStatus();
  }

  // The second stage of the sandbox, for a worker that is warm.
  void Seal(fleet::WorkerHandle& worker, engine::ModelInfo info, uint32_t records_replayed) {
    if (info.sandbox_stage == 0) return Join(worker, info, records_replayed);
    if (const std::string why = WhyStageOne(info, sandbox_stage_); !why.empty()) {
      info.sandbox.push_back(base::Cat("stage 1: ", why));
      return Join(worker, info, records_replayed);
    }
    worker.Seal([this, &worker, info = std::move(info),
                 records_replayed](const channel::SealedRecord& sealed) mutable {
      if (!sealed.status.ok() && sandbox_enforced_) {
        return Refuse(worker, base::WithContext(
                                  sealed.status,
                                  "--sandbox=enforce, but the warm worker could not be confined "
                                  "further (--sandbox=best-effort goes on without): "));
      }
      info.sandbox_stage = sealed.status.ok() ? 2 : 1;
      info.sandbox.push_back(sealed.status.ok() ? sealed.report
                                                : std::string(base::Message(sealed.status)));
      Join(worker, info, records_replayed);
    });
  }

  void Join(fleet::WorkerHandle& worker, const engine::ModelInfo& info, uint32_t records_replayed) {
    absl::StatusOr<std::shared_ptr<front::Servable>> servable =
        home_->AddWorker(id_, &worker, info, std::move(setup_));
    if (!servable.ok()) return Refuse(worker, servable.status());
    joined_ = true;
    obs::Info("model {}, version {}: its sandbox has grade {} and is at stage {}{}", key_.model,
              key_.version, info.sandbox_grade, info.sandbox_stage,
              info.sandbox_stage == 1 ? base::Cat(" (", info.sandbox.back(), ")") : "");
    loads().CountLoaded({.model = key_.model,
                         .path = directory_,
                         .load_time = absl::Microseconds(info.load_microseconds),
                         .warm_up_time = absl::Microseconds(info.warm_up_microseconds),
                         .warm_up_runs = info.warm_up_runs,
                         .records_replayed = records_replayed});
    ToCatalog([info, handle = *std::move(servable)](models::Catalog* catalog,
                                                    const fleet::WorkerKey& key) {
      catalog->OnLoaded(key, info, handle);
    });
  }

  // It may have been the warm-up: the next worker of these files does without, unless the operator
  // is strict about recorded requests.
  void DiedBeforeItServed(const std::string& warming, const absl::Status& reason) {
    loads().CountLoadFailed(key_.model, directory_);
    std::string text(base::Message(reason));
    if (!warming.empty()) text += base::Cat(" (in ", warming, ")");
    loop::PostOrDie(host_->setup_.loops->control(), [host = host_, key = key_, id = id_, text] {
      host->died_loading_.insert(id);
      if (host->catalog_ != nullptr) host->catalog_->OnDied(key, text);
    });
  }

  void ToCatalog(std::function<void(models::Catalog*, const fleet::WorkerKey&)> tell) {
    loop::PostOrDie(host_->setup_.loops->control(), [host = host_, key = key_, tell] {
      if (host->catalog_ != nullptr) tell(host->catalog_, key);
    });
  }

  Host* const host_;
  loop::EventLoop& loop_;
  VersionHome* const home_;
  const std::shared_ptr<models::Mailbox> mailbox_;
  const fleet::WorkerKey key_;
  const VersionId id_;
  VersionSetup setup_;
  std::optional<WarmUpPlan> warm_up_plan_;
  std::unique_ptr<WarmUp> warm_up_;  // While recorded requests are replayed.
  bool joined_ = false;              // It serves.
  const std::string directory_;      // Of the version.
  const std::optional<int> sandbox_stage_;
  const bool sandbox_enforced_;
  absl::Status refused_;  // Loaded, but not taken.
};

Host::Host(Setup setup)
    : setup_(std::move(setup)), shared_bytes_(SharedBytes(setup_.network->request_bytes_max())) {
  for (int i = 0; i < setup_.loops->size(); ++i) {
    homes_.push_back(std::make_unique<VersionHome>(setup_.loops->at(i)));
    mailboxes_.push_back(std::make_shared<models::Mailbox>(&setup_.loops->at(i)));
  }
}

Host::~Host() {
  for (const std::shared_ptr<models::Mailbox>& mailbox : mailboxes_) mailbox->Close();
}

int Host::HomeOf(const std::string& model) const {
  // All versions of a model live on one loop, so that a swap moves no connection's calls.
  return static_cast<int>(std::hash<std::string>()(model) %
                          static_cast<size_t>(setup_.loops->size()));
}

std::shared_ptr<sched::ModelBytes> Host::BytesOf(const std::string& model) {
  std::shared_ptr<sched::ModelBytes>& bytes = model_bytes_[model];
  if (bytes == nullptr) {
    const size_t models = std::max<size_t>(1, catalog_->models().size());
    bytes = std::make_shared<sched::ModelBytes>(
        ReservedBytes(setup_.network->request_bytes_max(), models), &shared_bytes_);
  }
  return bytes;
}

VersionSetup Host::SetupOf(const fleet::WorkerKey& key, const config::PlatformSettings& platform) {
  VersionSetup setup;
  setup.queue.model = key.model;
  setup.queue.version = key.version;
  const config::ModelSettings& settings = SettingsOf(settings_, key.model);
  PlanBatching(platform, settings, &setup.queue);
  setup.queue.model_bytes = BytesOf(key.model);
  setup.run_times = setup_.run_times;
  if (settings.run_timeout_ms) {
    setup.queue.run_timeout = absl::Milliseconds(*settings.run_timeout_ms);
  }
  if (settings.batching_enabled.value_or(true)) setup.platform = &platform;
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
  const config::PlatformSettings& platform = PlatformOf(*setup_.platforms, config.platform);
  VersionSetup setup = SetupOf(key, platform);
  const config::ModelSettings& settings = SettingsOf(settings_, key.model);
  const sched::QueueOptions queue = QueueToWarmFor(platform, settings, files);
  spec.load = PlanLoad(key, files, config, settings, platform, *setup_.options, setup_.machine,
                       queue, workers_started_++);
  std::optional<WarmUpPlan> warm_up = PlanWarmUp(files, config.worker, queue);
  // Zeros are run for that, too.
  if (died_loading_.contains(id)) spec.load.narrow_session_config.clear();
  if (died_loading_.contains(id) && !(warm_up && warm_up->strict)) {
    obs::Warn("model {}, version {}: a worker died before it served; this one is not warmed up",
              key.model, key.version);
    warm_up.reset();
    spec.load.synthetic_warm_up = false;
  }
  spec.onednn = OneDnnOf(key.runtime);
  spec.load_wait_max = LoadWaitMax(key, SettingsOf(settings_, key.model));
  const bool enforced = spec.load.sandbox_enforced;
  obs::Info("model {}, version {}: loading {}", key.model, key.version, files.directory);
  setup_.fleet->Launch(
      std::move(spec), setup_.loops->at(home),
      std::make_unique<Observer>(Observer::Parts{.host = this,
                                                 .home = home,
                                                 .key = key,
                                                 .id = id,
                                                 .setup = std::move(setup),
                                                 .warm_up = std::move(warm_up),
                                                 .directory = files.directory,
                                                 .sandbox_stage = settings.sandbox_stage,
                                                 .sandbox_enforced = enforced}));
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
  std::erase_if(died_loading_, [&snapshot](const VersionId& id) {
    const auto model = snapshot.models.find(id.model);
    const models::VersionEntry* version =
        model == snapshot.models.end() ? nullptr : model->second->Version(id.version);
    return version == nullptr || version->generation != id.generation;
  });
  std::erase_if(model_bytes_,
                [&snapshot](const auto& model) { return !snapshot.models.contains(model.first); });
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
