// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "base/unique_fd.h"
#include "channel/control.h"
#include "channel/packet_socket.h"
#include "loop/event_loop.h"

namespace tensord::fleet {

// The descriptors a worker is born with.
struct WorkerEnds {
  base::UniqueFd channel;
  int request_segment = -1;   // Kept by the front, too.
  int response_segment = -1;  // Likewise.
  base::UniqueFd out;
  base::UniqueFd err;
};

// One zygote: asked for when the first fork is wanted, asked for again when it dies, ended when it
// does not answer.
// Threads: the control loop.
class ZygoteClient {
 public:
  struct Callbacks {
    std::function<void()> start;  // Ask the supervisor for a zygote.
    std::function<void(uint64_t incarnation, int pid)> forked;
    std::function<void(uint64_t incarnation, absl::Status status)> failed;
    // The zygote died with this fork in it: whether there is a process is not known. If there is,
    // it finds its channel closed, and ends.
    std::function<void(uint64_t incarnation)> lost;
    std::function<void(int pid)> kill;  // Ask the supervisor to end a zygote that hangs.
  };

  ZygoteClient(loop::EventLoop& loop, Callbacks callbacks)
      : loop_(loop), callbacks_(std::move(callbacks)) {}
  ~ZygoteClient() {
    loop_.Cancel(restart_);
    loop_.Cancel(watchdog_);
  }

  // Forks now, or as soon as there is a zygote. Answered once, by `forked`, `failed` or `lost`.
  void Fork(uint64_t incarnation, WorkerEnds ends);
  // A fork that has not been sent yet is answered by `failed`.
  void Forget(uint64_t incarnation);

  void OnStarted(int pid, base::UniqueFd socket);
  // It ended, or could not be started (then its pid was 0).
  void OnEnded();
  int pid() const { return pid_; }
  // Whether a fork was asked for whose pid is not known yet.
  bool forking() const { return !sent_.empty(); }

 private:
  struct Waiting {
    uint64_t incarnation;
    WorkerEnds ends;
  };

  void AskForZygote();
  void PlanRestart();
  void Fail(uint64_t incarnation, std::string_view why);
  void Send(Waiting fork);
  void KeepWatch();
  void OnReadable();

  loop::EventLoop& loop_;
  const Callbacks callbacks_;
  int pid_ = 0;
  bool asked_ = false;
  int deaths_ = 0;  // In a row, without a fork between.
  loop::TimerId restart_ = 0;
  std::optional<channel::PacketSocket> socket_;
  loop::EventLoop::Watch watch_;
  std::deque<Waiting> waiting_;
  // Incarnations that were asked for and not yet answered, and when the zygote must have answered.
  std::map<uint64_t, absl::Time> sent_;
  bool answers_ = false;  // It has mapped its libraries: a fork takes no time any more.
  loop::TimerId watchdog_ = 0;
};

}  // namespace tensord::fleet
