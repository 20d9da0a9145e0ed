// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/catalog.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "models/check_models.h"
#include "models/decide.h"
#include "models/observe.h"
#include "models/report.h"
#include "models/version_policy.h"
#include "models/view.h"
#include "models/world.h"
#include "obs/log.h"

namespace tensord::models {
namespace {

// Decide is asked again after its actions were applied; each round moves every version forward by a
// state at least, so a handful do. More would be a bug of ours, and must not hang the server.
constexpr int kRoundsMax = 1000;

}  // namespace

class Catalog::Impl {
 public:
  Impl(loop::Timers& timers, const Options& options, CatalogHost& host)
      : timers_(timers), host_(host), snapshot_(std::make_shared<Snapshot>()) {
    desired_.options = options;
    desired_.options.load_retries_max = std::clamp(options.load_retries_max, 0, 1 << 20);
  }

  ~Impl() {
    for (const loop::TimerId timer : {run_timer_, wake_timer_}) timers_.Cancel(timer);
    for (Waiter& waiter : waiters_) waiter.done(Closing());
    for (auto& [done, status] : answers_) done(Closing());
  }

  bool SetModels(std::vector<ModelConfig> models, Done done, absl::Time deadline) {
    absl::Status status = Check(models);
    if (!status.ok()) {
      Answer(std::move(done), std::move(status));
      return false;
    }
    const absl::Time now = timers_.Now();
    Waiter waiter{.done = std::move(done),
                  .since = now,
                  .deadline = std::min(deadline, now + limits::kReloadWaitMax)};
    for (const ModelConfig& model : models) {
      if (IsNew(model) && !AsksForNothing(model.policy)) waiter.models.insert(model.name);
    }
    if (!waiter.models.empty() && waiters_.size() >= limits::kReloadsWaitingMax) {
      Answer(std::move(waiter.done),
             absl::ResourceExhaustedError(
                 base::Cat(waiters_.size(), " reloads wait for their models already: try again")));
      return false;
    }
    Replace(std::move(models));
    waiters_.push_back(std::move(waiter));
    watch_all_ |= options().poll_period <= absl::ZeroDuration();
    Schedule();
    return true;
  }

  absl::Status Check(const std::vector<ModelConfig>& models) const {
    if (shutting_down_) return Closing();
    RETURN_IF_ERROR(CheckModels(models, models_));
    if (!configured_) return absl::OkStatus();
    return CheckLabels(models, models_, *snapshot_, options().allow_labels_for_unavailable);
  }

  void Shutdown(loop::Task done) {
    shutting_down_ = true;
    drained_.push_back(std::move(done));
    for (Waiter& waiter : std::exchange(waiters_, {})) Answer(std::move(waiter.done), Closing());
    Replace({});
    Schedule();
  }

  void OnSourceUpdate(std::string_view model, std::string_view base_path,
                      absl::StatusOr<Listing> listing) {
    const std::string name(model);
    const auto at = desired_.models.find(name);
    if (at == desired_.models.end() || at->second.config.base_path != base_path) return;
    SourceState& source = sources_[name];
    const bool after_error = source.looked_at && !source.status.ok();
    source.looked_at = true;
    if (listing.ok()) {
      source.status = SourceStatus(at->second.config, *listing);
      source.Note(*listing, timers_.Now());
      LogWarnings(name, std::exchange(source.warnings, listing->warnings), listing->warnings);
      Listed(name, *std::move(listing), after_error, &desired_, &observed_);
    } else {
      source.status = listing.status();
    }
    Changed(name);
  }

  void OnLoaded(const WorkerKey& key, const engine::ModelInfo& info, std::shared_ptr<void> handle) {
    Loaded(key, info, std::move(handle), timers_.Now(), &observed_);
    Changed(key.model);
  }

  void OnLoadFailed(const WorkerKey& key, const absl::Status& status) {
    LoadFailed(key, status, options(), timers_.Now(), &observed_);
    Changed(key.model);
  }

  void OnDied(const WorkerKey& key, std::string_view reason) {
    Died(key, reason, options(), timers_.Now(), &observed_);
    Changed(key.model);
  }

  void OnStopped(const WorkerKey& key) {
    Stopped(key, options(), timers_.Now(), &observed_);
    Changed(key.model);
  }

  void OnMemory(const WorkerKey& key, uint64_t private_bytes) {
    WorkerRecord* worker = nullptr;
    if (observed_.FindWorker(key, &worker) == nullptr) return;
    if (std::exchange(worker->memory_bytes, private_bytes) != private_bytes) Changed(key.model);
  }

  void SetHandle(std::string_view model, int64_t version, uint64_t generation,
                 std::shared_ptr<void> handle) {
    const auto at = observed_.models.find(std::string(model));
    if (at == observed_.models.end()) return;
    for (VersionRecord& record : at->second.versions) {
      if (record.number != version || record.files.generation != generation) continue;
      if (record.state == State::kEnd) return;
      record.handle = std::move(handle);
      return Changed(at->first);
    }
  }

  std::shared_ptr<const Snapshot> snapshot() const { return snapshot_; }
  const std::vector<ModelConfig>& models() const { return models_; }

 private:
  struct Waiter {
    Done done;
    absl::Time since;
    absl::Time deadline;
    std::set<std::string> models = {};
    std::map<std::string, std::string> errors = {};  // Of those that failed.
  };

  const Options& options() const { return desired_.options; }
  static absl::Status Closing() {
    return absl::UnavailableError("the server is shutting down: no model is loaded any more");
  }

  void Answer(Done done, absl::Status status) {
    answers_.emplace_back(std::move(done), std::move(status));
    Schedule();
  }

  void Changed(const std::string& model) {
    dirty_.insert(model);
    Schedule();
  }

  // All events of one turn of the loop are decided about together.
  void Schedule() {
    if (run_timer_ == 0) run_timer_ = timers_.At(timers_.Now(), [this] { Run(); });
  }

  void Replace(std::vector<ModelConfig> models) {
    configured_ = true;
    std::map<std::string, DesiredModel> before = std::exchange(desired_.models, {});
    for (const ModelConfig& model : models) {
      DesiredModel& now = desired_.models[model.name];
      const auto old = before.find(model.name);
      const bool same_path = old != before.end() && old->second.config.base_path == model.base_path;
      if (old != before.end()) now = std::move(old->second);
      if (!same_path) {
        now.found.clear();
        now.listed = false;
        SourceState& source = sources_[model.name] = SourceState();
        source.look = ++last_look_;
      }
      if (old == before.end()) ForgetFailures(model.name);
      if (now.config != model) dirty_.insert(model.name);
      now.config = model;
      for (VersionRecord& record : observed_.models[model.name].versions) {
        if (SameSpec(record.config, model)) record.config = model;
      }
      before.erase(model.name);
    }
    for (const auto& [name, model] : before) {
      sources_.erase(name);
      dirty_.insert(name);
    }
    models_ = std::move(models);
  }

  // A model that comes back into the list starts afresh.
  void ForgetFailures(const std::string& name) {
    for (VersionRecord& record : observed_.models[name].versions) record.failure = Failure::kNone;
  }

  void Run() {
    run_timer_ = 0;
    const absl::Time now = timers_.Now();
    Orders orders;
    absl::Time wake = DecideAll(now, &orders);
    PublishChanges(now);
    for (const Order& order : orders) Give(order);
    UpdateWatch();
    wake = std::min(wake, AnswerWaiters(now));
    for (const auto& [name, source] : sources_) wake = std::min(wake, source.NextChange(now));
    for (auto& [done, status] : std::exchange(answers_, {})) done(status);
    if (shutting_down_ && Drained()) {
      for (loop::Task& done : std::exchange(drained_, {})) done();
    }
    timers_.Cancel(wake_timer_);
    wake_timer_ = wake == absl::InfiniteFuture() ? 0 : timers_.At(wake, [this] { Wake(); });
  }

  // Time alone changes what is shown of versions whose files never became complete.
  void Wake() {
    wake_timer_ = 0;
    for (const auto& [name, source] : sources_) {
      if (!source.incomplete.empty()) dirty_.insert(name);
    }
    Schedule();
  }

  absl::Time DecideAll(absl::Time now, Orders* orders) {
    for (int round = 0; round < kRoundsMax; ++round) {
      // A label that moves may let go of the version where it was.
      for (auto& [name, model] : desired_.models) {
        if (MoveLabels(observed_.models[name], &model)) dirty_.insert(name);
      }
      const Decision decision = Decide(desired_, observed_, now);
      if (decision.actions.empty()) return decision.wake;
      for (const Action& action : decision.actions) {
        obs::Debug("models: {}", ToString(action));
        dirty_.insert(ModelOf(action));
        Apply(action, desired_, now, &observed_, orders);
      }
    }
    obs::Error("models: no end of decisions; this is a bug of the server, please report it");
    return now + absl::Seconds(1);
  }

  void Give(const Order& order) {
    WorkerRecord* worker = nullptr;
    const VersionRecord* record = observed_.FindWorker(order.key, &worker);
    if (record == nullptr) return;  // The host told of its end inside an earlier call.
    if (!order.start.has_value()) return host_.Stop(order.key);
    // A copy: the host may call back, and change what is observed.
    host_.Start(order.key, *order.start, ModelConfig(record->config));
  }

  void PublishChanges(absl::Time now) {
    ForgetRemoved();
    const std::shared_ptr<const Snapshot> before = snapshot_;
    const bool dirty = !dirty_.empty();
    const auto next = std::make_shared<Snapshot>(*before);
    for (const std::string& name : std::exchange(dirty_, {})) Refresh(name, now, next.get());
    snapshot_ = next;
    next->ready = before->ready || Ready();
    if (!next->start.has_value()) next->start = Started();
    if (dirty || !published_ || next->ready != before->ready || next->start != before->start) {
      published_ = true;
      host_.Publish(snapshot_);
    }
  }

  void Refresh(const std::string& name, absl::Time now, Snapshot* next) {
    const ObservedModel& observed = observed_.models[name];
    const auto desired = desired_.models.find(name);
    if (desired == desired_.models.end() && observed.versions.empty()) {
      observed_.models.erase(name);
      next->models.erase(name);
      return;
    }
    const std::shared_ptr<const ModelEntry> before = next->models[name];
    std::shared_ptr<const ModelEntry> entry;
    if (desired == desired_.models.end()) {
      entry = View(nullptr, nullptr, observed, now);
    } else {
      entry = View(&desired->second, &sources_.at(name), observed, now);
    }
    LogChanges(name, before.get(), *entry, now);
    next->models[name] = std::move(entry);
  }

  bool Ready() const {
    if (!configured_ || shutting_down_) return false;
    return std::ranges::all_of(desired_.models, [this](const auto& model) {
      const auto at = snapshot_->models.find(model.first);
      return at != snapshot_->models.end() &&
             (at->second->Latest() != nullptr || AsksForNothing(model.second.config.policy));
    });
  }

  Progress ProgressNow(const std::string& name) const {
    const auto at = snapshot_->models.find(name);
    if (at == snapshot_->models.end()) return {};
    return ProgressOf(name, *at->second);
  }

  std::optional<absl::Status> Started() const {
    if (!configured_ || shutting_down_) return std::nullopt;
    std::map<std::string, std::string> errors;
    for (const auto& [name, model] : desired_.models) {
      const Progress progress = ProgressNow(name);
      if (AsksForNothing(model.config.policy)) continue;
      if (progress.kind == Progress::Kind::kFailed) {
        errors[name] = progress.error;
      } else if (progress.kind != Progress::Kind::kAvailable) {
        return std::nullopt;
      }
    }
    return DidNotBecomeAvailable("servable(s)", errors);
  }

  // The time of the next deadline.
  absl::Time AnswerWaiters(absl::Time now) {
    absl::Time next = absl::InfiniteFuture();
    for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
      std::optional<absl::Status> status = Outcome(&*waiter, now);
      if (!status.has_value()) {
        next = std::min(next, waiter->deadline);
        ++waiter;
        continue;
      }
      answers_.emplace_back(std::move(waiter->done), *std::move(status));
      waiter = waiters_.erase(waiter);
    }
    return next;
  }

  // New by name; or mended: another base path for a model that has nothing to serve.
  bool IsNew(const ModelConfig& model) const {
    const auto old = std::find_if(models_.begin(), models_.end(),
                                  [&model](const ModelConfig& m) { return m.name == model.name; });
    if (old == models_.end()) return true;
    return old->base_path != model.base_path && !snapshot_->ModelReady(model.name).value_or(false);
  }

  std::optional<absl::Status> Outcome(Waiter* waiter, absl::Time now) const {
    std::string pending;
    for (auto at = waiter->models.begin(); at != waiter->models.end();) {
      if (!desired_.models.contains(*at)) {
        return absl::AbortedError(
            base::Cat("model ", *at, " left the configuration by a later reload"));
      }
      Progress progress = ProgressNow(*at);
      if (progress.kind == Progress::Kind::kPending) {
        pending += base::Cat(pending.empty() ? "" : ", ", *at);
        ++at;
        continue;
      }
      if (progress.kind != Progress::Kind::kAvailable) {
        waiter->errors[*at] = std::move(progress.error);
      }
      at = waiter->models.erase(at);
    }
    if (waiter->models.empty()) return DidNotBecomeAvailable("model(s)", waiter->errors);
    if (now < waiter->deadline) return std::nullopt;
    return absl::DeadlineExceededError(
        base::Cat("the new configuration holds, but after ",
                  absl::FormatDuration(absl::Trunc(now - waiter->since, absl::Milliseconds(1))),
                  " these models are not available yet; they go on loading: ", pending));
  }

  void UpdateWatch() {
    std::vector<WatchedPath> watched;
    for (const ModelConfig& model : models_) {
      watched.push_back({.model = model.name,
                         .query = QueryOf(model, observed_.models[model.name]),
                         .look = sources_.at(model.name).look});
    }
    if (!std::exchange(watch_all_, false) && watched == watched_) return;
    watched_ = watched;
    host_.Watch(std::move(watched));
  }

  bool Drained() const {
    return std::ranges::all_of(observed_.models, [](const auto& model) {
      return std::ranges::all_of(model.second.versions, [](const VersionRecord& record) {
        return record.state == State::kEnd;
      });
    });
  }

  // Models that left the list are kept for GetModelStatus, up to a number.
  void ForgetRemoved() {
    std::vector<std::pair<absl::Time, std::string>> over;
    for (const auto& [name, model] : observed_.models) {
      if (desired_.models.contains(name)) continue;
      absl::Time last = absl::InfinitePast();
      bool active = false;
      for (const VersionRecord& record : model.versions) {
        last = std::max(last, record.since);
        active |= record.state != State::kEnd;
      }
      if (!active) over.emplace_back(last, name);
    }
    if (over.size() <= limits::kRemovedModelsMax) return;
    std::ranges::sort(over);
    over.resize(over.size() - limits::kRemovedModelsMax);
    for (const auto& [last, name] : over) {
      observed_.models.erase(name);
      dirty_.insert(name);
    }
  }

  loop::Timers& timers_;
  CatalogHost& host_;

  bool configured_ = false;  // The first list came.
  bool shutting_down_ = false;
  std::vector<ModelConfig> models_;
  Desired desired_;
  Observed observed_;
  std::map<std::string, SourceState> sources_;  // One for each configured model.
  uint64_t last_look_ = 0;

  std::shared_ptr<const Snapshot> snapshot_;
  bool published_ = false;
  std::set<std::string> dirty_;  // Models whose entry in the snapshot is out of date.
  std::vector<WatchedPath> watched_;
  bool watch_all_ = false;  // Look again even if the paths are the same.

  std::vector<Waiter> waiters_;
  std::vector<std::pair<Done, absl::Status>> answers_;  // To be given at the end of the turn.
  std::vector<loop::Task> drained_;
  loop::TimerId run_timer_ = 0;
  loop::TimerId wake_timer_ = 0;
};

Catalog::Catalog(loop::Timers& timers, const Options& options, CatalogHost& host)
    : impl_(std::make_unique<Impl>(timers, options, host)) {}
Catalog::~Catalog() = default;

bool Catalog::SetModels(std::vector<ModelConfig> models, Done done, absl::Time deadline) {
  return impl_->SetModels(std::move(models), std::move(done), deadline);
}
absl::Status Catalog::Check(const std::vector<ModelConfig>& models) const {
  return impl_->Check(models);
}
void Catalog::Shutdown(loop::Task done) { impl_->Shutdown(std::move(done)); }
void Catalog::OnSourceUpdate(std::string_view model, std::string_view base_path,
                             absl::StatusOr<Listing> listing) {
  impl_->OnSourceUpdate(model, base_path, std::move(listing));
}
void Catalog::OnLoaded(const WorkerKey& key, const engine::ModelInfo& info,
                       std::shared_ptr<void> handle) {
  impl_->OnLoaded(key, info, std::move(handle));
}
void Catalog::OnLoadFailed(const WorkerKey& key, const absl::Status& status) {
  impl_->OnLoadFailed(key, status);
}
void Catalog::OnDied(const WorkerKey& key, std::string_view reason) { impl_->OnDied(key, reason); }
void Catalog::OnStopped(const WorkerKey& key) { impl_->OnStopped(key); }
void Catalog::OnMemory(const WorkerKey& key, uint64_t private_bytes) {
  impl_->OnMemory(key, private_bytes);
}
void Catalog::SetHandle(std::string_view model, int64_t version, uint64_t generation,
                        std::shared_ptr<void> handle) {
  impl_->SetHandle(model, version, generation, std::move(handle));
}
std::shared_ptr<const Snapshot> Catalog::snapshot() const { return impl_->snapshot(); }
const std::vector<ModelConfig>& Catalog::models() const { return impl_->models(); }

}  // namespace tensord::models
