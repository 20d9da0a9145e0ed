// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/server.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/clock.h"
#include "base/limits.h"
#include "base/sched_limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "config/check.h"
#include "config/cpu_budget.h"
#include "front/handlers/reply.h"
#include "obs/log.h"
#include "serve/metrics_page.h"
#include "tensord/model_server_config.pb.h"

namespace tensord::serve {
namespace {

void LogWorkerLine(const fleet::WorkerKey& key, std::string_view line) {
  obs::Write(obs::Level::kInfo, line,
             {{"model", key.model}, {"version", base::Cat(key.version)}, {"from", "worker"}});
}

using Reply = std::function<void(absl::Status)>;

// `done` holds the client's exchange, which must be let go on the caller's loop.
Reply ReplyOn(loop::EventLoop& caller, Reply done) {
  auto answer = std::make_shared<Reply>(std::move(done));
  return [answer, &caller](const absl::Status& status) {
    loop::PostOrDie(caller, [answer, status] { std::exchange(*answer, nullptr)(status); });
  };
}

void LogWarnings(const config::Warnings& warnings) {
  for (const std::string& warning : warnings) obs::Warn("{}", warning);
}

absl::StatusOr<std::vector<config::ModelEntry>> ModelsOfReload(std::string_view config,
                                                               const config::Platforms& platforms) {
  tensorflow::serving::ModelServerConfig proto;
  if (!proto.ParseFromArray(config.data(), static_cast<int>(config.size()))) {
    return absl::InvalidArgumentError("the model configuration is malformed");
  }
  config::Warnings warnings;
  absl::StatusOr<std::vector<config::ModelEntry>> models =
      config::ToModelEntries(proto, platforms, &warnings);
  LogWarnings(warnings);
  return models;
}

std::set<std::string> LogPrefixes(const std::vector<config::ModelEntry>& models) {
  std::set<std::string> prefixes;
  for (const config::ModelEntry& model : models) {
    if (model.logging) prefixes.insert(model.logging->filename_prefix);
  }
  return prefixes;
}

// Without those that somebody unloaded by name.
std::vector<config::ModelEntry> Loaded(std::vector<config::ModelEntry> models,
                                       const std::set<std::string>& unloaded) {
  std::erase_if(models,
                [&](const config::ModelEntry& model) { return unloaded.contains(model.name); });
  return models;
}

}  // namespace

Server::Server(const config::ServerOptions& options, const supervisor::FrontSockets& sockets)
    : options_(options), sockets_(sockets) {}

Server::~Server() = default;

absl::StatusOr<Server::Files> Server::ReadFiles(config::Unset unset,
                                                config::FileTexts texts) const {
  config::Warnings warnings;
  Files files{.models = {}, .settings = {}, .texts = std::move(texts)};
  ASSIGN_OR_RETURN(files.models,
                   config::LoadModels(options_, platforms_, &warnings, unset, &files.texts));
  ASSIGN_OR_RETURN(files.settings, config::LoadModelSettings(options_, &files.texts));
  LogWarnings(warnings);
  return files;
}

// Where the last front was told a list by RPC, that one, and not the file's.
absl::Status Server::PlanFirst(config::FileTexts texts) {
  ASSIGN_OR_RETURN(Files files, ReadFiles(config::Unset::kNoModels, std::move(texts)));
  log_prefixes_ = LogPrefixes(files.models);
  first_ = {.models = std::move(files.models),
            .settings = std::move(files.settings),
            .kept = keeper_->now()};
  Merge(files.texts, &first_.kept);
  if (!first_.kept.reload) return absl::OkStatus();
  ASSIGN_OR_RETURN(first_.models, ModelsOfReload(*first_.kept.reload, platforms_));
  return absl::OkStatus();
}

static Machine MachineOf(uint64_t memory_bytes) {
  return {.cpus = config::CpuBudget(),
          .cores = config::CoreBudget(),
          .memory_bytes = memory_bytes,
          .root = geteuid() == 0};
}

absl::StatusOr<std::unique_ptr<Server>> Server::Create(const config::ServerOptions& options,
                                                       const supervisor::FrontSockets& sockets) {
  auto server = std::make_unique<Server>(options, sockets);
  RETURN_IF_ERROR(server->Build());
  return server;
}

absl::Status Server::Build() {
  KeptConfig kept = TakeKeptConfig(sockets_.kept_fd);
  again_ = sockets_.kept_fd >= 0;
  config::FileTexts texts = kept.files;
  // The supervisor has logged what there is to warn of.
  ASSIGN_OR_RETURN(platforms_, config::LoadPlatforms(options_, nullptr, &texts));
  ASSIGN_OR_RETURN(monitoring_, config::LoadMonitoring(options_, &texts));
  const uint64_t memory_limit = config::MemoryLimit(options_, config::MemoryBudget());
  machine_ = MachineOf(memory_limit);

  ASSIGN_OR_RETURN(loops_, loop::LoopSet::Create(static_cast<int>(sockets_.loops.size())));
  ASSIGN_OR_RETURN(file_thread_, loop::LoopThread::Start());
  ASSIGN_OR_RETURN(long_work_, loop::LoopThread::Start());
  context_.long_work = long_work_.get();
  RETURN_IF_ERROR(OpenLogs());
  loop::EventLoop& control = loops_->control();
  FillContext();
  supervisor_ = std::make_unique<fleet::SupervisorClient>(
      control, base::UniqueFd(sockets_.supervisor_fd),
      [this](const channel::ControlRecord& record, base::UniqueFd descriptor) {
        OnSupervisor(record, std::move(descriptor));
      },
      [this] { Finish(1); });
  keeper_ = std::make_unique<ConfigKeeper>(control, supervisor_.get(), std::move(kept));
  fleet_ = std::make_unique<fleet::Fleet>(control, supervisor_.get(), LogWorkerLine);
  tls_ = std::make_unique<TlsKeeper>(
      options_, control, *file_thread_,
      [this](const config::FileTexts& used) { keeper_->SetFiles(used); });
  RETURN_IF_ERROR(tls_->Open(&texts));
  RETURN_IF_ERROR(OpenAccess(&texts));
  RETURN_IF_ERROR(PlanFirst(std::move(texts)));
  network_ = std::make_unique<Network>(loops_.get(), &context_, tls_.get(),
                                       config::RequestBytesBudget(options_, memory_limit));
  if (!options_.state_dir.empty()) run_times_ = ReadRunTimes(options_.state_dir);
  host_ = std::make_unique<Host>(Host::Setup{.loops = loops_.get(),
                                             .fleet = fleet_.get(),
                                             .network = network_.get(),
                                             .metrics = &request_metrics_,
                                             .request_logs = request_logs_.get(),
                                             .options = &options_,
                                             .platforms = &platforms_,
                                             .run_times = std::make_shared<RunTimeBook>(run_times_),
                                             .machine = machine_});
  const models::Options plan = PlanCatalog(options_, memory_limit);
  scanner_ = std::make_unique<models::Scanner>(
      control, plan.poll_period,
      [period = plan.poll_period] { return models::MakeLocalSource(period); },
      [this](const std::string& model, const std::string& base_path,
             absl::StatusOr<models::Listing> listing) {
        catalog_->OnSourceUpdate(model, base_path, std::move(listing));
      });
  catalog_ = std::make_unique<models::Catalog>(control, plan, *host_);
  host_->Attach(catalog_.get(), scanner_.get());
  return absl::OkStatus();
}

void Server::FillContext() {
  context_.options = &options_;
  context_.metrics = &request_metrics_;
  context_.all_metrics = &metrics_;
  context_.metrics_path = monitoring_.prometheus ? monitoring_.path : std::string();
  context_.reload = [this](std::string config, absl::Time deadline, loop::EventLoop& caller,
                           std::function<void(absl::Status)> done) {
    loop::PostOrDie(loops_->control(), [this, config = std::move(config), deadline, &caller,
                                        done = std::move(done)]() mutable {
      ReloadFromClient(std::move(config), deadline, caller, std::move(done));
    });
  };
  context_.set_loaded = [this](std::string model, bool load, absl::Time deadline,
                               loop::EventLoop& caller, std::function<void(absl::Status)> done) {
    loop::PostOrDie(loops_->control(), [this, model = std::move(model), load, deadline, &caller,
                                        done = std::move(done)]() mutable {
      SetLoaded(model, load, deadline, caller, std::move(done));
    });
  };
  context_.metrics_page = [this](std::shared_ptr<front::Exchange> exchange) {
    SendMetricsPage(std::move(exchange));
  };
}

absl::Status Server::OpenAccess(config::FileTexts* texts) {
  access_ = std::make_unique<AccessKeeper>(
      options_, loops_->control(), *file_thread_,
      [this](const config::FileTexts& used) { keeper_->SetFiles(used); });
  RETURN_IF_ERROR(access_->Open(texts));
  // Without rules, no call asks for them.
  if (!options_.access_rules_file.empty()) context_.access = access_->slot();
  context_.admin_apart = config::HasAdminListener(options_);
  return absl::OkStatus();
}

absl::Status Server::OpenLogs() {
  if (!options_.access_log.empty()) {
    auto log = front::AccessLog::Open(options_.access_log);
    if (!log.ok() && !again_) return log.status();
    // A server that has served goes on without.
    if (!log.ok()) obs::Error("{}; nothing is logged there", base::Message(log.status()));
    if (log.ok()) access_log_ = *std::move(log);
    context_.access_log = access_log_.get();
  }
  ASSIGN_OR_RETURN(record_writer_, front::RecordWriter::Start());
  request_logs_ = std::make_unique<front::RequestLogs>(record_writer_.get(), &request_metrics_);
  return absl::OkStatus();
}

int Server::Run() {
  loop::PostOrDie(loops_->control(), [this] {
    SetModels(std::move(first_), absl::InfiniteFuture(), [](const absl::Status& status) {
      if (!status.ok()) obs::Warn("{}", base::Message(status));
    });
    if (again_) {
      // These go on from what the last front had, which may not be taken back later than usual.
      tls_->Look();
      access_->Look();
    }
    if (sockets_.listen_when_loaded) {
      WhenStarted();
    } else {
      OpenNetwork();
    }
    PollFiles();
    KeepRunTimes();
  });
  loops_->Run();
  file_thread_->Flush(limits::kLogFlushMax);
  if (access_log_ != nullptr) access_log_->Flush(limits::kLogFlushMax);
  record_writer_->Complete(limits::kLogFlushMax);
  return exit_code_;
}

void Server::OpenNetwork() {
  network_->Open(sockets_, options_, [this](const absl::Status& opened) {
    if (!opened.ok()) {
      obs::Error("cannot serve: {}", base::Message(opened));
      return Finish(1);
    }
    channel::ControlRecord ready;
    ready.kind = channel::ControlKind::kFrontReady;
    supervisor_->Send(ready);
  });
}

// As the original: no port opens before every model is up, and one that fails ends the start.
void Server::WhenStarted() {
  const std::optional<absl::Status> started = catalog_->StartFinished();
  if (!started) {
    loops_->control().At(loops_->control().Now() + limits::kStartPoll, [this] { WhenStarted(); });
    return;
  }
  if (draining_) return;
  if (started->ok()) return OpenNetwork();
  // On stdout, as the original: scripts look for it there.
  const std::string words = base::Cat("Failed to start server. Error: ", started->ToString(), "\n");
  (void)!write(STDOUT_FILENO, words.data(), words.size());
  constexpr int kOriginalFailure = 255;
  Finish(kOriginalFailure);
}

void Server::OnSupervisor(const channel::ControlRecord& record, base::UniqueFd descriptor) {
  if (record.kind == channel::ControlKind::kDrain) return Drain();
  if (record.kind == channel::ControlKind::kReload) {
    if (access_log_ != nullptr) access_log_->Reopen();
    tls_->Look();
    access_->Look();
    return ReloadFromFiles(Asked::kBySignal);
  }
  if (record.kind == channel::ControlKind::kPing) {
    channel::ControlRecord pong;
    pong.kind = channel::ControlKind::kPong;
    return supervisor_->Send(pong);
  }
  fleet_->OnSupervisor(record, std::move(descriptor));
}

void Server::SetFromFiles(Files files, std::function<void(absl::Status)> done) {
  std::set<std::string> log_prefixes = LogPrefixes(files.models);
  KeptConfig kept = keeper_->now();
  Merge(files.texts, &kept);
  kept.reload.reset();
  Wish wish{.models = std::move(files.models),
            .settings = std::move(files.settings),
            .kept = std::move(kept)};
  if (SetModels(std::move(wish), absl::InfiniteFuture(), std::move(done))) {
    log_prefixes_ = std::move(log_prefixes);
  }
}

bool Server::SetModels(Wish wish, absl::Time deadline, std::function<void(absl::Status)> done) {
  std::vector<models::ModelConfig> models =
      PlanModels(Loaded(wish.models, wish.kept.unloaded), wish.settings, platforms_);
  // Settings, logs and list hold together or not at all. What was decided acts in a later turn.
  if (!catalog_->SetModels(std::move(models), std::move(done), deadline)) return false;
  std::map<std::string, config::RequestLogging> logging;
  for (const config::ModelEntry& model : wish.models) {
    if (model.logging) logging[model.name] = *model.logging;
  }
  request_logs_->Configure(std::move(logging));
  host_->SetSettings(std::move(wish.settings));
  configured_ = std::move(wish.models);
  keeper_->Set(std::move(wish.kept));
  return true;
}

void Server::SetLoaded(const std::string& model, bool load, absl::Time deadline,
                       loop::EventLoop& caller, std::function<void(absl::Status)> done) {
  const Reply reply = ReplyOn(caller, std::move(done));
  const bool known = std::ranges::any_of(
      configured_, [&model](const config::ModelEntry& entry) { return entry.name == model; });
  if (!known) {
    return reply(
        absl::NotFoundError(base::Cat("model \"", model,
                                      "\" is not in this server's configuration; add it to "
                                      "--model_config_file, or reload with it")));
  }
  Wish wish{.models = configured_, .settings = host_->settings(), .kept = keeper_->now()};
  if (load) {
    wish.kept.unloaded.erase(model);
  } else {
    wish.kept.unloaded.insert(model);
  }
  SetModels(std::move(wish), deadline, reply);
}

// A poll that finds what the last one found says nothing.
void Server::TellReload(Asked asked, const std::string& problem) {
  const bool news = std::exchange(reload_problem_, problem) != problem;
  if (!problem.empty()) {
    if (news || asked == Asked::kBySignal) obs::Error("{}", problem);
  } else if (news || asked == Asked::kBySignal) {
    obs::Info("the model configuration that was read holds");
  }
}

void Server::TakeFiles(Asked asked, absl::StatusOr<Files> files) {
  if (!files.ok()) {
    return TellReload(
        asked, base::Cat("the configuration stays as it is: ", base::Message(files.status())));
  }
  SetFromFiles(*std::move(files), [this, asked](const absl::Status& status) {
    TellReload(asked, status.ok() ? "" : base::Cat("reload: ", base::Message(status)));
  });
}

void Server::ReloadFromFiles(Asked asked) {
  if (asked == Asked::kBySignal) obs::Info("reading the model configuration again");
  const bool posted = file_thread_->Run([this, asked] {
    absl::StatusOr<Files> files = ReadFiles(config::Unset::kError, {});
    loop::PostOrDie(loops_->control(), [this, asked, files = std::move(files)]() mutable {
      if (asked == Asked::kByPoll) poll_.End();
      TakeFiles(asked, std::move(files));
      Reloaded(asked);
    });
  });
  if (posted) return;
  if (asked == Asked::kByPoll) poll_.End();
  obs::Warn("too many reloads wait; this one is dropped");
  Reloaded(asked);
}

// What the supervisor would otherwise ask of the next front, should this one die now.
void Server::Reloaded(Asked asked) {
  if (asked != Asked::kBySignal) return;
  channel::ControlRecord record;
  record.kind = channel::ControlKind::kReloaded;
  supervisor_->Send(record);
}

void Server::PollFiles() {
  const int period = options_.model_config_file_poll_wait_seconds;
  if (period <= 0 || options_.model_config_file.empty()) return;
  loops_->control().At(loops_->control().Now() + absl::Seconds(period), [this] {
    if (poll_.Begin()) ReloadFromFiles(Asked::kByPoll);
    PollFiles();
  });
}

// Whoever reaches the port may reload; where this machine's files lie is for its operator to say.
absl::Status Server::MayLog(const std::vector<config::ModelEntry>& models) const {
  if (options_.allow_request_logs_by_rpc) return absl::OkStatus();
  for (const config::ModelEntry& model : models) {
    if (!model.logging || log_prefixes_.contains(model.logging->filename_prefix)) continue;
    return absl::InvalidArgumentError(base::Cat(
        "Model ", model.name, " has a logging_config with filename_prefix \"",
        model.logging->filename_prefix,
        "\", which no configuration file of this server names; name it in --model_config_file, or "
        "start the server with --allow_request_logs_by_rpc"));
  }
  return absl::OkStatus();
}

// Hints for the next life. Models that are not here now keep theirs, as far as there is room.
void Server::SaveRunTimes() {
  host_->CollectStats([this](const std::vector<VersionStats>& versions) {
    RunTimeBook book = run_times_;
    for (const VersionStats& version : versions) {
      for (const auto& [key, times] : version.run_times) {
        if (!times.empty()) book[key] = times;
      }
    }
    while (book.size() > limits::kRunTimesMax) book.erase(book.begin());
    if (book == run_times_) return;
    run_times_ = std::move(book);
    (void)!file_thread_->Run([directory = options_.state_dir, book = run_times_] {
      const absl::Status written = WriteRunTimes(directory, book);
      if (!written.ok()) obs::Warn("--state_dir: {}", base::Message(written));
    });
  });
}

void Server::KeepRunTimes() {
  if (options_.state_dir.empty()) return;
  loops_->control().At(loops_->control().Now() + limits::kRunTimesSaveEvery, [this] {
    SaveRunTimes();
    KeepRunTimes();
  });
}

void Server::ReloadFromClient(std::string config, absl::Time deadline, loop::EventLoop& caller,
                              std::function<void(absl::Status)> done) {
  const Reply reply = ReplyOn(caller, std::move(done));
  absl::StatusOr<std::vector<config::ModelEntry>> models = ModelsOfReload(config, platforms_);
  if (!models.ok()) return reply(models.status());
  if (absl::Status allowed = MayLog(*models); !allowed.ok()) return reply(allowed);
  Wish wish{.models = *std::move(models), .settings = host_->settings(), .kept = keeper_->now()};
  wish.kept.reload = std::move(config);
  wish.kept.unloaded.clear();  // Who sends a whole list means all of it.
  SetModels(std::move(wish), deadline, reply);
}

void Server::SendMetricsPage(std::shared_ptr<front::Exchange> exchange) {
  loop::EventLoop& caller = exchange->loop();
  auto held = std::make_shared<std::shared_ptr<front::Exchange>>(std::move(exchange));
  loop::PostOrDie(loops_->control(), [this, &caller, held = std::move(held)]() mutable {
    network_->CountConnections([this, &caller, held = std::move(held)](size_t connections) {
      host_->CollectStats([this, &caller, held, connections](std::vector<VersionStats> stats) {
        PageFacts facts{.snapshot = catalog_->snapshot().get(),
                        .versions = std::move(stats),
                        .worker_pids = fleet_->pids(),
                        .front_pid = getpid(),
                        .supervisor_pid = getppid(),
                        .request_bytes_held = network_->request_bytes_held(),
                        .connections = connections,
                        .access_log = access_log_.get()};
        const auto snapshot = catalog_->snapshot();
        facts.snapshot = snapshot.get();
        std::string page = MetricsPage(&metrics_, facts);
        loop::PostOrDie(caller, [held, page = std::move(page)]() mutable {
          front::ReplyText(**held, 200, std::move(page));
          held->reset();
        });
      });
    });
  });
}

void Server::Drain() {
  if (draining_) return;
  draining_ = true;
  if (!options_.state_dir.empty()) SaveRunTimes();
  context_.draining.store(true);
  network_->AnnounceDrain();
  const absl::Duration lame_duck = absl::Milliseconds(options_.drain_lame_duck_ms);
  drain_by_ = loops_->control().Now() + lame_duck + absl::Milliseconds(options_.drain_timeout_ms);
  obs::Info("draining: not ready from now on, what is in flight is finished");
  loops_->control().At(loops_->control().Now() + lame_duck, [this] { DrainConnections(); });
}

void Server::DrainConnections() {
  network_->Drain(drain_by_, [this] {
    catalog_->Shutdown([this] { Finish(0); });
    // Workers that do not end in time go with this process.
    loops_->control().At(drain_by_, [this] { Finish(0); });
  });
}

void Server::Finish(int exit_code) {
  exit_code_ = exit_code;
  loops_->Stop();
}

}  // namespace tensord::serve
