// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/limits.h"
#include "channel/control.h"
#include "channel/record.h"
#include "fleet/supervisor_client.h"
#include "fleet/worker_handle.h"
#include "fleet/worker_key.h"
#include "fleet/worker_log.h"
#include "fleet/zygote_client.h"
#include "loop/event_loop.h"

namespace tensord::fleet {

struct LaunchSpec {
  WorkerKey key;
  channel::LoadRecord load;
  channel::OneDnn onednn = channel::OneDnn::kAuto;  // Of the key's runtime.
  absl::Duration load_wait_max = limits::kLoadWaitMax;
};

// All worker processes of the front, and what it takes to make them: sockets, segments, log pipes,
// zygotes, the supervisor.
//
// Threads: the control loop, but for what runs on a worker's home loop (WorkerHandle and its
// observer). Lifetime: the loops outlive it.
class Fleet {
 public:
  // A line that a worker wrote to stdout or stderr.
  using OnLine = std::function<void(const WorkerKey& key, std::string_view line)>;

  Fleet(loop::EventLoop& control, SupervisorClient* supervisor, OnLine line);
  ~Fleet();

  // Starts a worker that lives on `home`. The observer is called there, and goes there, after
  // OnEnded. REQUIRES: no worker has this key.
  void Launch(LaunchSpec spec, loop::EventLoop& home, std::unique_ptr<WorkerObserver> observer);
  // Lets it finish and end; the observer hears of it. Does nothing for an unknown key.
  void Stop(const WorkerKey& key);

  // kZygoteStarted, kProcessEnded, kProcessStopped.
  void OnSupervisor(const channel::ControlRecord& record, base::UniqueFd descriptor);

  // Of the workers whose process is known.
  std::map<WorkerKey, int> pids() const;

 private:
  struct Cell;
  struct Member {
    LaunchSpec spec;
    std::shared_ptr<Cell> cell;
    int forks = 1;  // Asked of zygotes for it, by all its incarnations.
    int pid = 0;
    bool kill_wanted = false;
    bool stop_wanted = false;
    std::unique_ptr<WorkerLog> out = {};
    std::unique_ptr<WorkerLog> err = {};
  };
  struct Ended {
    int pid;
    int wait_status;
  };

  struct Made;
  absl::StatusOr<Made> MakeWorker(const LaunchSpec& spec, uint64_t incarnation);
  void Adopt(uint64_t incarnation, Member member, Made made);
  ZygoteClient& Zygote(const WorkerKey& key, channel::OneDnn onednn);
  void OnForked(uint64_t incarnation, int pid);
  void OnForkFailed(uint64_t incarnation, const absl::Status& status);
  void OnForkLost(uint64_t incarnation);
  void OnProcessEnded(int pid, int wait_status);
  void Kill(uint64_t incarnation);
  void Forget(uint64_t incarnation);
  Member* FindByPid(int pid);
  bool Forking() const;

  loop::EventLoop& control_;
  SupervisorClient* const supervisor_;
  const OnLine line_;
  uint64_t last_incarnation_ = 0;
  std::map<uint64_t, Member> members_;
  std::map<WorkerKey, uint64_t> by_key_;
  std::map<uint32_t, std::unique_ptr<ZygoteClient>> zygotes_;
  // Of processes that no zygote has told of yet. Forgotten when no fork is out: a pid comes round.
  std::deque<Ended> early_ends_;
};

}  // namespace tensord::fleet
