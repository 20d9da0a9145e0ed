// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// The catalog in a world where everything goes wrong: versions come, go and are half-written, loads
// fail, hang or are slow, workers die, base paths vanish, lists are reloaded. One thread, one seed,
// no real time. After every step the promises of docs/model_lifecycle.md are checked.
//
//   models_sim [--seeds=1000] [--seed=N] [--verbose]

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/text.h"
#include "loop/testing/fake_timers.h"
#include "models/catalog.h"
#include "models/ledger.h"
#include "models/states.h"
#include "models/version_policy.h"
#include "obs/log.h"

namespace tensord::models {
namespace {

using base::Cat;

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int Below(int n) { return static_cast<int>(engine_() % static_cast<uint64_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }
  absl::Duration Within(absl::Duration max) {
    return absl::Milliseconds(Below(static_cast<int>(absl::ToInt64Milliseconds(max)) + 1));
  }

 private:
  std::mt19937_64 engine_;
};

// How the files of a version behave when a worker loads them.
enum class Temper : uint8_t { kGood, kBad, kFlaky, kDeadly, kSlow, kHanging };

struct DiskVersion {
  bool complete = true;
  Temper temper = Temper::kGood;
  bool stateful = false;
  uint64_t fingerprint = 0;
};

struct Process {
  uint64_t serial = 0;  // Tells processes that had the same key apart.
  uint64_t generation = 0;
  absl::Time started;
  bool loaded = false;
  bool told_to_stop = false;
  Temper temper = Temper::kGood;
  bool stateful = false;
  uint64_t bytes = 0;
};

class Simulation final : public CatalogHost {
 public:
  Simulation(uint64_t seed, bool verbose) : seed_(seed), random_(seed), verbose_(verbose) {
    options_.memory_bytes_max = random_.Chance(30) ? Ledger::Estimate(kFileBytes) * 6 : 0;
    options_.allow_labels_for_unavailable = random_.Chance(50);
    options_.load_retries_max = random_.Below(4);
    catalog_ = std::make_unique<Catalog>(timers_, options_, *this);
  }

  // False when a promise was broken; the reason is on stderr.
  bool Run() {
    for (int i = random_.Below(4); i >= 0; --i) ChangeDisk();
    Reload();
    Poll();
    const absl::Time calm = timers_.Now() + absl::Minutes(2) + random_.Within(absl::Minutes(3));
    while (timers_.Now() < calm && ok_) {
      timers_.At(timers_.Now() + random_.Within(absl::Seconds(4)), [this] { Disturb(); });
      while (ok_ && !settled_) Step();
      settled_ = false;
    }
    Heal();
    for (const absl::Time until = timers_.Now() + absl::Minutes(8);
         ok_ && timers_.RunNext(until);) {
      if (ok_ && AtRest()) Check();
    }
    CheckHealed();
    Drain();
    return ok_;
  }

  // CatalogHost.
  void Start(const WorkerKey& key, const VersionFiles& files, const ModelConfig& config) override {
    Say(Cat("start ", ToString(key), " generation ", files.generation));
    if (processes_.contains(key)) Broken(Cat(ToString(key), " was started while it runs"));
    if (shut_down_) Broken(Cat(ToString(key), " was started during the shutdown"));
    if (key.model != config.name) Broken("a worker was started with another model's configuration");
    Process process{.serial = ++serial_, .generation = files.generation, .started = timers_.Now()};
    process.bytes = files.memory_estimate_bytes;
    const auto& versions = disk_[files.directory.substr(0, files.directory.rfind('/'))];
    const auto at = versions.find(key.version);
    process.temper = at == versions.end() ? Temper::kBad : at->second.temper;
    const uint64_t contents = at == versions.end() ? 0 : at->second.fingerprint;
    const auto first =
        contents_.try_emplace(files.generation, at == versions.end() ? DiskVersion() : at->second)
            .first;
    if (first->second.fingerprint != contents && told_[files.directory] == contents) {
      Broken(Cat(ToString(key), " mixes contents in generation ", files.generation));
    }
    process.stateful = first->second.stateful;
    const uint64_t serial = process.serial;
    processes_[key] = process;
    CheckLoads();
    CheckMemory();
    const absl::Duration load = process.temper == Temper::kSlow
                                    ? absl::Seconds(20) + random_.Within(absl::Minutes(1))
                                    : random_.Within(absl::Seconds(3));
    if (process.temper == Temper::kHanging && !healed_) return;
    timers_.At(timers_.Now() + load, [=, this] { FinishLoad(key, serial); });
  }

  void Stop(const WorkerKey& key) override {
    Say(Cat("stop ", ToString(key)));
    const auto at = processes_.find(key);
    if (at == processes_.end()) return Broken(Cat(ToString(key), " was stopped but does not run"));
    if (at->second.told_to_stop) Broken(Cat(ToString(key), " was stopped twice"));
    at->second.told_to_stop = true;
    const uint64_t serial = at->second.serial;
    timers_.At(timers_.Now() + random_.Within(absl::Seconds(5)), [=, this] {
      if (!Runs(key, serial)) return;
      processes_.erase(key);
      if (random_.Chance(10)) return catalog_->OnDied(key, "killed while it drained");
      catalog_->OnStopped(key);
    });
  }

  void Publish(std::shared_ptr<const Snapshot> snapshot) override {
    CheckEdges(*snapshot_, *snapshot);
    snapshot_ = std::move(snapshot);
  }

  void Watch(std::vector<WatchedPath> paths) override {
    watched_ = std::move(paths);
    timers_.At(timers_.Now() + random_.Within(absl::Milliseconds(50)), [this] { Look(); });
  }

 private:
  static constexpr uint64_t kFileBytes = 10 << 20;

  bool Runs(const WorkerKey& key, uint64_t serial) const {
    const auto at = processes_.find(key);
    return at != processes_.end() && at->second.serial == serial;
  }

  void FinishLoad(const WorkerKey& key, uint64_t serial) {
    if (!Runs(key, serial)) return;
    Process& process = processes_.at(key);
    if (process.temper == Temper::kBad && !process.told_to_stop) {
      processes_.erase(key);
      return catalog_->OnLoadFailed(key, absl::DataLossError("bad files"));
    }
    if (process.temper == Temper::kFlaky && random_.Chance(60) && !process.told_to_stop) {
      processes_.erase(key);
      if (random_.Chance(50)) return catalog_->OnDied(key, "aborted while loading");
      return catalog_->OnLoadFailed(key, absl::InternalError("flaky"));
    }
    process.loaded = true;
    ever_loaded_.insert(process.generation);
    engine::ModelInfo info;
    info.private_bytes = process.bytes;
    if (process.stateful) info.stateful_reason = "a counter";
    const bool deadly = process.temper == Temper::kDeadly && !healed_;
    Say(Cat("loaded ", ToString(key)));
    catalog_->OnLoaded(key, info, std::make_shared<uint64_t>(process.generation));
    if (!deadly) return;
    timers_.At(timers_.Now() + random_.Within(absl::Seconds(1)), [=, this] { Kill(key, serial); });
  }

  void Kill(const WorkerKey& key, uint64_t serial) {
    if (!Runs(key, serial)) return;
    Say(Cat("death of ", ToString(key)));
    died_[key.model] = true;
    processes_.erase(key);
    catalog_->OnDied(key, "SIGSEGV");
  }

  void Disturb() {
    settled_ = true;
    switch (random_.Below(10)) {
      case 0:
        Reload();
        break;
      case 1:
      case 2:
      case 3:
      case 4:
      case 5:
        ChangeDisk();
        break;
      case 6:
        broken_paths_[Path(random_.Below(kModels), random_.Below(2))] = random_.Below(3);
        break;
      case 7:
        broken_paths_.clear();
        break;
      default:
        if (processes_.empty()) break;
        auto at = processes_.begin();
        std::advance(at, random_.Below(static_cast<int>(processes_.size())));
        Kill(WorkerKey(at->first), at->second.serial);
    }
  }

  static std::string Name(int model) { return Cat("m", model); }
  static std::string Path(int model, int which) { return Cat("/models/", which, "/m", model); }

  void ChangeDisk() {
    auto& versions = disk_[Path(random_.Below(kModels), random_.Below(5) == 0 ? 1 : 0)];
    const int64_t number = 1 + random_.Below(5);
    if (random_.Chance(25)) {
      versions.erase(number);
      return;
    }
    constexpr Temper kTempers[] = {Temper::kGood, Temper::kGood,   Temper::kGood,
                                   Temper::kBad,  Temper::kFlaky,  Temper::kDeadly,
                                   Temper::kSlow, Temper::kHanging};
    versions[number] = {.complete = random_.Chance(80),
                        .temper = kTempers[random_.Below(std::size(kTempers))],
                        .stateful = random_.Chance(20),
                        .fingerprint = ++serial_};
  }

  ModelConfig RandomModel(int model) {
    ModelConfig config;
    config.name = Name(model);
    config.base_path = Path(model, random_.Below(6) == 0 ? 1 : 0);
    config.replicas = 1 + (random_.Chance(30) ? random_.Below(3) : 0);
    switch (random_.Below(5)) {
      case 0:
        config.policy.kind = VersionPolicy::Kind::kAll;
        break;
      case 1:
        config.policy.kind = VersionPolicy::Kind::kSpecific;
        for (int i = random_.Below(3); i > 0; --i) {
          config.policy.specific.push_back(1 + random_.Below(5));
        }
        break;
      case 2:
        config.policy.latest = 2;
        break;
      default:
        break;
    }
    if (random_.Chance(20)) config.labels["stable"] = 1 + random_.Below(5);
    if (random_.Chance(10)) config.worker.executors = 1 + random_.Below(2);
    return config;
  }

  void Reload() {
    std::vector<ModelConfig> models;
    for (int model = 0; model < kModels; ++model) {
      if (random_.Chance(85)) models.push_back(RandomModel(model));
    }
    SetModels(std::move(models));
  }

  void SetModels(std::vector<ModelConfig> models) {
    Say("reload");
    ++reloads_;
    catalog_->SetModels(std::move(models), [this](const absl::Status& status) {
      Say(Cat("reload answered: ", base::Message(status)));
      ++answers_;
    });
    // A list that was refused has changed nothing.
    for (int model = 0; model < kModels; ++model) {
      const bool listed = std::ranges::find(catalog_->models(), Name(model), &ModelConfig::name) !=
                          catalog_->models().end();
      if (!listed) died_[Name(model)] = true;
    }
  }

  void Poll() {
    if (shut_down_) return;
    Look();
    timers_.At(timers_.Now() + absl::Seconds(1), [this] { Poll(); });
  }

  void Look() {
    for (const WatchedPath& watched : watched_) {
      const std::string& path = watched.query.base_path;
      catalog_->OnSourceUpdate(watched.model, path, List(path));
    }
  }

  absl::StatusOr<Listing> List(const std::string& path) {
    const auto broken = broken_paths_.find(path);
    if (broken != broken_paths_.end() && broken->second == 0) {
      return absl::UnavailableError("the file system hangs");
    }
    if (!disk_.contains(path) || (broken != broken_paths_.end() && broken->second == 1)) {
      return absl::NotFoundError(Cat("base path ", path, " does not exist"));
    }
    Listing listing;
    if (broken != broken_paths_.end()) return listing;  // Empty for a while.
    for (const auto& [number, version] : disk_[path]) {
      told_[Cat(path, "/", number)] = version.fingerprint;
      listing.versions.push_back({.number = number,
                                  .directory = Cat(path, "/", number),
                                  .complete = version.complete,
                                  .reason = version.complete ? "" : "half-written",
                                  .bytes = kFileBytes,
                                  .fingerprint = version.fingerprint});
    }
    std::ranges::sort(listing.versions, std::greater<>(), &FoundVersion::number);
    return listing;
  }

  // From now on everything works, and everything is new on disk.
  void Heal() {
    healed_ = true;
    broken_paths_.clear();
    for (auto& [path, versions] : disk_) {
      for (auto& [number, version] : versions) {
        version = {.complete = true, .stateful = version.stateful, .fingerprint = ++serial_};
      }
    }
    for (auto& [key, process] : processes_) {
      if (process.temper == Temper::kHanging && !process.loaded) {
        timers_.At(timers_.Now(), [this, key = key, serial = process.serial] {
          if (!Runs(key, serial)) return;
          processes_.erase(key);
          catalog_->OnLoadFailed(key, absl::DeadlineExceededError("hung"));
        });
      }
      process.temper = Temper::kGood;
    }
  }

  // One timer; the checks hold whenever the catalog has nothing left to do at this moment.
  void Step() {
    if (!timers_.RunNext()) Broken("no timer is left");
    if (AtRest()) Check();
  }

  // Nothing is due now: the catalog has decided about everything that happened.
  bool AtRest() const { return timers_.NextAt() > timers_.Now(); }

  int LiveOf(const std::string& model) const {
    return static_cast<int>(std::ranges::count_if(processes_, [&](const auto& entry) {
      return entry.first.model == model && entry.second.loaded && !entry.second.told_to_stop;
    }));
  }

  void Check() {
    ++checks_;
    for (const auto& [name, model] : snapshot_->models) {
      for (const VersionEntry& version : model->versions) CheckEntry(name, version);
    }
    for (const ModelConfig& model : catalog_->models()) {
      const int live = LiveOf(model.name);
      const bool wanted = !AsksForNothing(model.policy);
      const bool died = died_[model.name];
      if (wanted && live_[model.name] > 0 && live == 0 && !died) {
        Broken(Cat("the last worker of ", model.name, " was taken away"));
      }
      const auto at = snapshot_->models.find(model.name);
      const bool serves = at != snapshot_->models.end() && at->second->Latest() != nullptr;
      if (serves != (live > 0)) {
        Broken(Cat(model.name, serves ? " is shown but not live" : " is live but not shown"));
      }
    }
    live_.clear();
    for (int model = 0; model < kModels; ++model) live_[Name(model)] = LiveOf(Name(model));
    died_.clear();
  }

  // What is shown as available has a live worker of that generation, and the handle of it.
  void CheckEntry(const std::string& name, const VersionEntry& version) {
    if (version.state != State::kAvailable) return;
    const auto lives = [&](const auto& entry) {
      return entry.first.model == name && entry.first.version == version.number &&
             entry.second.generation == version.generation && entry.second.loaded &&
             !entry.second.told_to_stop;
    };
    const auto live = std::ranges::count_if(processes_, lives);
    if (live != version.replicas_live || live == 0) {
      Broken(Cat(name, "/", version.number, " says ", version.replicas_live, " live, is ", live));
    }
    const auto handle = std::static_pointer_cast<uint64_t>(version.handle);
    if (handle == nullptr || *handle != version.generation) Broken("a handle of other contents");
    if (!version.stateful_reason.empty() && live > 1) Broken("a stateful model has replicas");
  }

  void CheckLoads() {
    int loads = 0;
    int first = 0;
    for (const auto& [key, process] : processes_) {
      if (process.loaded || process.told_to_stop) continue;
      ++loads;
      const bool young = process.started + limits::kLoadStandsAside > timers_.Now();
      if (young && !ever_loaded_.contains(process.generation)) ++first;
    }
    if (loads > limits::kLoadsInFlightMax) Broken(Cat(loads, " loads in flight"));
    if (first > limits::kLoadsInFlight) Broken(Cat(first, " first loads in flight"));
  }

  void CheckMemory() {
    uint64_t bytes = 0;
    for (const auto& [key, process] : processes_) bytes += process.bytes;
    if (options_.memory_bytes_max != 0 && bytes > options_.memory_bytes_max) {
      Broken(Cat("workers for ", bytes, " bytes were started"));
    }
  }

  // One generation only moves along the table, maybe several edges at once.
  void CheckEdges(const Snapshot& before, const Snapshot& after) {
    for (const auto& [name, model] : after.models) {
      const auto old = before.models.find(name);
      if (old == before.models.end() || old->second == model) continue;
      for (const VersionEntry& version : model->versions) {
        const VersionEntry* was = old->second->Version(version.number);
        if (was == nullptr || was->generation != version.generation || version.generation == 0) {
          continue;
        }
        if (!Reachable(was->state, version.state)) {
          Broken(Cat(name, "/", version.number, " went from ", StateName(was->state), " to ",
                     StateName(version.state)));
        }
      }
    }
  }

  static bool Reachable(State from, State to) {
    std::set<State> reached = {from};
    for (size_t before = 0; before != reached.size();) {
      before = reached.size();
      for (const Edge& edge : kEdges) {
        if (edge.from != State::kEnd && reached.contains(edge.from)) reached.insert(edge.to);
      }
    }
    return reached.contains(to);
  }

  // With nothing wrong any more, exactly what the policy asks for serves. What serves while nothing
  // on disk could take over is kept as it is.
  void CheckHealed() {
    if (!ok_ || options_.memory_bytes_max != 0) return;
    for (const ModelConfig& config : catalog_->models()) {
      const auto at = snapshot_->models.find(config.name);
      if (at == snapshot_->models.end()) return Broken(Cat(config.name, " is not shown"));
      std::set<int64_t> labelled;
      for (const auto& [label, number] : config.labels) labelled.insert(number);
      // A label that cannot move yet holds the version where it is.
      for (const auto& [label, number] : at->second->labels) labelled.insert(number);
      Numbers disk;
      for (const auto& [number, version] : disk_[config.base_path]) disk.insert(number);
      if (Chosen(config, disk, labelled).empty()) continue;
      Numbers serves;
      for (const VersionEntry& version : at->second->versions) {
        if (version.state == State::kAvailable) serves.insert(version.number);
      }
      disk.insert(serves.begin(), serves.end());
      const std::vector<int64_t> wanted = Chosen(config, disk, labelled);
      if (std::ranges::equal(wanted, serves)) continue;
      Broken(Cat(config.name, " serves", Text(serves), "; wanted are", Text(wanted)));
    }
  }

  using Numbers = std::set<int64_t, std::greater<>>;
  static std::vector<int64_t> Chosen(const ModelConfig& config, const Numbers& numbers,
                                     const std::set<int64_t>& labelled) {
    std::vector<Candidate> candidates;
    for (const int64_t number : numbers) candidates.push_back({.number = number});
    return Choose(config.policy, candidates, labelled);
  }
  static std::string Text(const auto& numbers) {
    std::string text;
    for (const int64_t number : numbers) text += Cat(" ", number);
    return text;
  }

  void Drain() {
    if (!ok_) return;
    shut_down_ = true;
    catalog_->Shutdown([this] { ++drained_; });
    timers_.Advance(absl::Minutes(3));
    if (!processes_.empty()) Broken("workers are left after the shutdown");
    if (drained_ != 1) Broken(Cat("the end of the shutdown was told ", drained_, " times"));
    if (answers_ != reloads_) Broken(Cat(reloads_, " reloads, ", answers_, " answers"));
  }

  void Say(const std::string& what) const {
    if (!verbose_) return;
    std::fprintf(stderr, "%9.3f %s\n", absl::ToDoubleSeconds(timers_.Now() - absl::UnixEpoch()),
                 what.c_str());
  }

  void Broken(const std::string& what) {
    ok_ = false;
    std::fprintf(stderr, "seed %llu, at %.3f s: %s; replay with --seed=%llu --verbose\n",
                 static_cast<unsigned long long>(seed_),
                 absl::ToDoubleSeconds(timers_.Now() - absl::UnixEpoch()), what.c_str(),
                 static_cast<unsigned long long>(seed_));
  }

  static constexpr int kModels = 4;

  const uint64_t seed_;
  Random random_;
  const bool verbose_;
  loop::FakeTimers timers_;
  Options options_;
  std::unique_ptr<Catalog> catalog_;

  std::map<std::string, std::map<int64_t, DiskVersion>> disk_;  // By base path.
  std::map<std::string, int> broken_paths_;                     // 0: hangs, 1: gone, 2: empty.
  std::map<WorkerKey, Process> processes_;
  std::set<uint64_t> ever_loaded_;            // Generations.
  std::map<uint64_t, DiskVersion> contents_;  // What a generation's first worker found.
  std::map<std::string, uint64_t> told_;      // What the catalog was told, by directory.
  std::vector<WatchedPath> watched_;
  std::shared_ptr<const Snapshot> snapshot_ = std::make_shared<Snapshot>();

  bool ok_ = true;
  bool settled_ = false;
  bool healed_ = false;
  bool shut_down_ = false;
  uint64_t serial_ = 0;
  int reloads_ = 0;
  int answers_ = 0;
  int drained_ = 0;
  int checks_ = 0;
  std::map<std::string, int> live_;   // At the last check.
  std::map<std::string, bool> died_;  // Since then; or it left the list.
};

}  // namespace
}  // namespace tensord::models

int main(int argc, char** argv) {
  uint64_t first = 1;
  uint64_t count = 1000;
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument(argv[i]);
    if (argument.starts_with("--seeds=")) count = std::strtoull(argv[i] + 8, nullptr, 10);
    if (argument.starts_with("--seed=")) {
      first = std::strtoull(argv[i] + 7, nullptr, 10);
      count = 1;
    }
    if (argument == "--verbose") verbose = true;
  }
  tensord::obs::LogOptions log;
  log.level = verbose ? tensord::obs::Level::kDebug : tensord::obs::Level::kError;
  tensord::obs::StartLog(log);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    if (!tensord::models::Simulation(seed, verbose).Run()) return 1;
  }
  std::printf("%llu seeds: all promises kept\n", static_cast<unsigned long long>(count));
  return 0;
}
