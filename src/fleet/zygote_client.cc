// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/zygote_client.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "fleet/control_io.h"

namespace tensord::fleet {

void ZygoteClient::Fork(uint64_t incarnation, WorkerEnds ends) {
  Waiting fork{incarnation, std::move(ends)};
  if (socket_) return Send(std::move(fork));
  waiting_.push_back(std::move(fork));
  AskForZygote();
}

void ZygoteClient::Forget(uint64_t incarnation) {
  const auto at = std::find_if(waiting_.begin(), waiting_.end(), [incarnation](const Waiting& w) {
    return w.incarnation == incarnation;
  });
  if (at == waiting_.end()) return;
  waiting_.erase(at);
  callbacks_.failed(incarnation, absl::CancelledError("the worker is not wanted any more"));
}

void ZygoteClient::AskForZygote() {
  if (asked_ || restart_ != 0) return;
  asked_ = true;
  callbacks_.start();
}

void ZygoteClient::OnStarted(int pid, base::UniqueFd socket) {
  pid_ = pid;
  asked_ = false;
  answers_ = false;
  socket_.emplace(std::move(socket));
  socket_->SetNonBlocking();
  watch_ = loop_.Add(socket_->fd(), EPOLLIN, [this](uint32_t) { OnReadable(); });
  for (Waiting& fork : std::exchange(waiting_, {})) Send(std::move(fork));
}

void ZygoteClient::OnEnded() {
  watch_.Reset();
  socket_.reset();
  pid_ = 0;
  asked_ = false;
  ++deaths_;
  loop_.Cancel(std::exchange(watchdog_, 0));
  // Those that come back by `lost` wait for the next zygote: that it is asked for after a pause is
  // settled before.
  const std::map<uint64_t, absl::Time> lost = std::exchange(sent_, {});
  PlanRestart();
  for (const auto& [incarnation, due] : lost) callbacks_.lost(incarnation);
  if (deaths_ >= limits::kZygoteTriesMax) {
    for (const Waiting& fork : std::exchange(waiting_, {})) {
      Fail(fork.incarnation,
           "the process that workers are forked from does not stay alive; its "
           "own log lines say why");
    }
  }
}

void ZygoteClient::PlanRestart() {
  if (restart_ != 0) return;
  // Even when nobody waits: the next worker must not wait for a runtime to be mapped.
  const absl::Duration wait = std::min(
      limits::kZygoteRestartFirst * (1 << std::min(deaths_ - 1, 10)), limits::kZygoteRestartMax);
  restart_ = loop_.At(loop_.Now() + wait, [this] {
    restart_ = 0;
    if (!socket_) AskForZygote();
  });
}

void ZygoteClient::Fail(uint64_t incarnation, std::string_view why) {
  callbacks_.failed(incarnation, absl::UnavailableError(base::Cat("no worker was made: ", why)));
}

void ZygoteClient::Send(Waiting fork) {
  channel::ControlRecord record;
  record.kind = channel::ControlKind::kFork;
  record.request = fork.incarnation;
  record.incarnation = fork.incarnation;
  const absl::Status sent =
      SendControl(*socket_, record,
                  {fork.ends.channel.get(), fork.ends.request_segment, fork.ends.response_segment,
                   fork.ends.out.get(), fork.ends.err.get()});
  if (sent.ok()) {
    const absl::Duration wait = answers_ ? limits::kForkWaitMax : limits::kZygoteStartMax;
    sent_[fork.incarnation] = loop_.Now() + wait;
    return KeepWatch();
  }
  // Its death is on the way: the next zygote gets this one.
  waiting_.push_back(std::move(fork));
}

// A zygote that was stopped, or hangs in the kernel, holds up every load.
void ZygoteClient::KeepWatch() {
  loop_.Cancel(std::exchange(watchdog_, 0));
  if (sent_.empty()) return;
  absl::Time due = absl::InfiniteFuture();
  for (const auto& [incarnation, at] : sent_) due = std::min(due, at);
  watchdog_ = loop_.At(due, [this] {
    watchdog_ = 0;
    bool hangs = false;
    for (auto& [incarnation, at] : sent_) {
      if (at > loop_.Now()) continue;
      hangs = true;
      at = loop_.Now() + limits::kForkWaitMax;  // Asked again, should this be of no avail.
    }
    if (hangs) callbacks_.kill(pid_);
    KeepWatch();
  });
}

void ZygoteClient::OnReadable() {
  while (watch_.active()) {
    absl::StatusOr<ControlMessage> message = ReceiveControl(*socket_);
    if (absl::IsNotFound(message.status())) return;
    if (!message.ok()) return watch_.Reset();  // The supervisor says how it ended.
    const channel::ControlRecord& record = message->record;
    if (sent_.erase(record.request) == 0) continue;
    answers_ = true;
    if (record.kind == channel::ControlKind::kForked) {
      deaths_ = 0;
      callbacks_.forked(record.request, record.pid);
    } else {
      callbacks_.failed(record.request,
                        absl::ResourceExhaustedError(
                            base::Cat("cannot fork a worker: ", std::strerror(record.error))));
    }
  }
}

}  // namespace tensord::fleet
