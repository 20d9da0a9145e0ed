// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/server_options.h"
#include "config/text_files.h"
#include "fleet/fleet.h"
#include "fleet/supervisor_client.h"
#include "front/handlers/access_log.h"
#include "front/handlers/context.h"
#include "front/handlers/request_log.h"
#include "loop/loop_set.h"
#include "loop/loop_thread.h"
#include "models/catalog.h"
#include "models/scanner.h"
#include "obs/request_metrics.h"
#include "serve/access_keeper.h"
#include "serve/host.h"
#include "serve/kept_config.h"
#include "serve/network.h"
#include "serve/pending_look.h"
#include "serve/tls_keeper.h"
#include "supervisor/front_sockets.h"

namespace tensord::serve {

// The front as a whole: builds all, runs, drains all.
//
// Threads: the thread that calls Run is the control loop's; everything here runs on it.
class Server {
 public:
  // Reads the files that the options name. Any error is one that an operator must mend.
  static absl::StatusOr<std::unique_ptr<Server>> Create(const config::ServerOptions& options,
                                                        const supervisor::FrontSockets& sockets);
  // For Create.
  Server(const config::ServerOptions& options, const supervisor::FrontSockets& sockets);
  ~Server();

  // Serves until told to drain; gives the process's exit code.
  int Run();

 private:
  // What the files say; read anew for each reload.
  struct Files {
    std::vector<config::ModelEntry> models;
    SettingsByModel settings;
    config::FileTexts texts;
  };
  // What is to be served. `kept` is what to keep for the next front once it holds.
  struct Wish {
    std::vector<config::ModelEntry> models;
    SettingsByModel settings;
    KeptConfig kept;
  };

  absl::Status Build();
  void FillContext();
  absl::Status OpenAccess(config::FileTexts* texts);
  absl::Status OpenLogs();
  // `texts`: those that need not be read.
  absl::StatusOr<Files> ReadFiles(config::Unset unset, config::FileTexts texts) const;
  absl::Status PlanFirst(config::FileTexts texts);

  void OnSupervisor(const channel::ControlRecord& record, base::UniqueFd descriptor);
  void OpenNetwork();
  void WhenStarted();
  void SetFromFiles(Files files, std::function<void(absl::Status)> done);
  // False when the catalog refuses the list: nothing has changed then, and `done` hears why.
  bool SetModels(Wish wish, absl::Time deadline, std::function<void(absl::Status)> done);
  enum class Asked : uint8_t { kBySignal, kByPoll };
  void ReloadFromFiles(Asked asked);
  void TakeFiles(Asked asked, absl::StatusOr<Files> files);
  void TellReload(Asked asked, const std::string& problem);
  void Reloaded(Asked asked);
  void PollFiles();
  absl::Status MayLog(const std::vector<config::ModelEntry>& models) const;
  void ReloadFromClient(std::string config, absl::Time deadline, loop::EventLoop& caller,
                        std::function<void(absl::Status)> done);
  void SetLoaded(const std::string& model, bool load, absl::Time deadline, loop::EventLoop& caller,
                 std::function<void(absl::Status)> done);
  void SendMetricsPage(std::shared_ptr<front::Exchange> exchange);
  void SaveRunTimes();
  void KeepRunTimes();
  void Drain();
  void DrainConnections();
  void Finish(int exit_code);

  const config::ServerOptions options_;
  const supervisor::FrontSockets sockets_;
  config::Platforms platforms_;  // Constant from Build on.
  Wish first_;
  bool again_ = false;                          // Another front was before this one.
  std::vector<config::ModelEntry> configured_;  // The list that holds.
  std::set<std::string> log_prefixes_;          // That files have named.
  PendingLook poll_{"configuration", "--model_config_file"};
  std::string reload_problem_;  // Of the last reading; empty: there was none.
  config::Monitoring monitoring_;
  Machine machine_;
  RunTimeBook run_times_;  // Of this life over that of the last one; as saved.
  int exit_code_ = 0;
  bool draining_ = false;
  absl::Time drain_by_;

  obs::Metrics metrics_;
  obs::RequestMetrics request_metrics_{&metrics_};
  front::ServerContext context_;
  std::unique_ptr<loop::LoopSet> loops_;
  std::unique_ptr<loop::LoopThread> file_thread_;
  std::unique_ptr<loop::LoopThread> long_work_;
  std::unique_ptr<front::AccessLog> access_log_;  // Null: off.
  std::unique_ptr<front::RecordWriter> record_writer_;
  std::unique_ptr<front::RequestLogs> request_logs_;
  std::unique_ptr<fleet::SupervisorClient> supervisor_;
  std::unique_ptr<ConfigKeeper> keeper_;
  std::unique_ptr<fleet::Fleet> fleet_;
  std::unique_ptr<TlsKeeper> tls_;
  std::unique_ptr<AccessKeeper> access_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<Host> host_;
  std::unique_ptr<models::Scanner> scanner_;
  std::unique_ptr<models::Catalog> catalog_;
};

}  // namespace tensord::serve
