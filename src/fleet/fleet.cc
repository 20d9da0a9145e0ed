// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/fleet.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "channel/packet_socket.h"
#include "channel/segment.h"
#include "loop/loop_set.h"

namespace tensord::fleet {

// What lives on a worker's home loop. Shared by messages between the loops; the handle and the
// observer are touched on the home loop only.
struct Fleet::Cell {
  explicit Cell(loop::EventLoop& loop) : home(loop) {}

  loop::EventLoop& home;
  std::unique_ptr<WorkerObserver> observer;
  std::unique_ptr<WorkerHandle> handle;
  uint64_t incarnation = 0;  // Of the member that has this cell. The control loop's.

  // Runs `task` with the handle, if there still is one.
  static void Tell(const std::shared_ptr<Cell>& cell,
                   absl::AnyInvocable<void(WorkerHandle&)> task) {
    loop::PostOrDie(cell->home, [cell, task = std::move(task)]() mutable {
      if (cell->handle != nullptr) task(*cell->handle);
    });
  }
};

// Both ends of everything that belongs to one new worker.
struct Fleet::Made {
  WorkerParts parts;
  WorkerEnds ends;
  base::UniqueFd out;
  base::UniqueFd err;
};

namespace {

// Passes everything on, and lets go of the worker after its end.
class EndingObserver final : public WorkerObserver {
 public:
  EndingObserver(std::unique_ptr<WorkerObserver> next, loop::Task ended)
      : next_(std::move(next)), ended_(std::move(ended)) {}

  void OnLoaded(WorkerHandle& worker, const engine::ModelInfo& info) override {
    next_->OnLoaded(worker, info);
  }
  void OnFree() override { next_->OnFree(); }
  void OnEnded(WorkerHandle* worker, End end, const absl::Status& reason) override {
    next_->OnEnded(worker, end, reason);
    ended_();
  }

 private:
  const std::unique_ptr<WorkerObserver> next_;
  loop::Task ended_;
};

// The end to read from never blocks; the worker's end does, as its libraries expect.
absl::StatusOr<std::pair<base::UniqueFd, base::UniqueFd>> LogPipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return absl::ResourceExhaustedError(base::Cat("pipe: ", std::strerror(errno)));
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return std::pair(base::UniqueFd(ends[0]), base::UniqueFd(ends[1]));
}

}  // namespace

Fleet::Fleet(loop::EventLoop& control, SupervisorClient* supervisor, OnLine line)
    : control_(control), supervisor_(supervisor), line_(std::move(line)) {}

Fleet::~Fleet() = default;

absl::StatusOr<Fleet::Made> Fleet::MakeWorker(const LaunchSpec& spec, uint64_t incarnation) {
  ASSIGN_OR_RETURN(auto sockets, channel::PacketSocket::Pair());
  auto& [ours, theirs] = sockets;
  ours.SetNonBlocking();
  ASSIGN_OR_RETURN(channel::RequestSegment request,
                   channel::RequestSegment::Create(limits::kRequestSegmentBytes));
  ASSIGN_OR_RETURN(channel::ResponseSegment response,
                   channel::ResponseSegment::Create(limits::kResponseSegmentBytes));
  ASSIGN_OR_RETURN(auto out, LogPipe());
  ASSIGN_OR_RETURN(auto err, LogPipe());
  WorkerEnds ends;
  ends.channel = base::UniqueFd(fcntl(theirs.fd(), F_DUPFD_CLOEXEC, 0));
  ends.request_segment = request.fd();
  ends.response_segment = response.fd();
  ends.out = std::move(out.second);
  ends.err = std::move(err.second);
  return Made{.parts = {.key = spec.key,
                        .incarnation = incarnation,
                        .load = spec.load,
                        .load_wait_max = spec.load_wait_max,
                        .channel = std::move(ours),
                        .request = std::move(request),
                        .response = std::move(response)},
              .ends = std::move(ends),
              .out = std::move(out.first),
              .err = std::move(err.first)};
}

void Fleet::Launch(LaunchSpec spec, loop::EventLoop& home,
                   std::unique_ptr<WorkerObserver> observer) {
  const uint64_t incarnation = ++last_incarnation_;
  auto cell = std::make_shared<Cell>(home);
  cell->observer = std::make_unique<EndingObserver>(
      std::move(observer), [this, cell = std::weak_ptr<Cell>(cell)] {
        const std::shared_ptr<Cell> held = cell.lock();
        // Deferred: the handle is what calls this.
        held->home.Defer([held] { held->handle.reset(); });
        loop::PostOrDie(control_, [this, held] { Forget(held->incarnation); });
      });
  by_key_[spec.key] = incarnation;
  cell->incarnation = incarnation;
  absl::StatusOr<Made> made = MakeWorker(spec, incarnation);
  Member member{.spec = std::move(spec), .cell = std::move(cell)};
  if (!made.ok()) {
    // Nothing was made that could end: the observer hears of it without a handle's help.
    members_[incarnation] = std::move(member);
    return OnForkFailed(incarnation, made.status());
  }
  Adopt(incarnation, std::move(member), *std::move(made));
}

// Makes the handle (the next one, if there is one already) and has the process forked.
void Fleet::Adopt(uint64_t incarnation, Member member, Made made) {
  if (!Forking()) early_ends_.clear();
  const WorkerKey key = member.spec.key;
  const channel::OneDnn onednn = member.spec.onednn;
  std::shared_ptr<Cell> cell = member.cell;
  const auto say = [this, key](std::string_view line) { line_(key, line); };
  member.out = std::make_unique<WorkerLog>(control_, std::move(made.out), say);
  member.err = std::make_unique<WorkerLog>(control_, std::move(made.err), say);
  members_[incarnation] = std::move(member);
  loop::PostOrDie(cell->home, [this, cell, incarnation, parts = std::move(made.parts)]() mutable {
    cell->handle = std::make_unique<WorkerHandle>(
        cell->home, std::move(parts), cell->observer.get(), [this, incarnation] {
          loop::PostOrDie(control_, [this, incarnation] { Kill(incarnation); });
        });
  });
  Zygote(key, onednn).Fork(incarnation, std::move(made.ends));
}

void Fleet::Stop(const WorkerKey& key) {
  const auto at = by_key_.find(key);
  if (at == by_key_.end()) return;
  Member& member = members_.at(at->second);
  member.stop_wanted = true;
  Cell::Tell(member.cell, [](WorkerHandle& handle) { handle.Stop(); });
}

ZygoteClient& Fleet::Zygote(const WorkerKey& key, channel::OneDnn onednn) {
  std::unique_ptr<ZygoteClient>& zygote = zygotes_[key.runtime];
  if (zygote == nullptr) {
    zygote = std::make_unique<ZygoteClient>(
        control_,
        ZygoteClient::Callbacks{
            .start =
                [this, runtime = key.runtime, kind = key.kind, onednn] {
                  channel::ControlRecord record;
                  record.kind = channel::ControlKind::kStartZygote;
                  record.runtime = runtime;
                  record.engine = kind == WorkerKind::kLiteRt ? channel::EngineKind::kLiteRt
                                                              : channel::EngineKind::kTensorFlow;
                  record.onednn = onednn;
                  supervisor_->Send(record);
                },
            .forked = [this](uint64_t incarnation, int pid) { OnForked(incarnation, pid); },
            .failed = [this](uint64_t incarnation,
                             const absl::Status& status) { OnForkFailed(incarnation, status); },
            .lost = [this](uint64_t incarnation) { OnForkLost(incarnation); },
            .kill =
                [this](int pid) {
                  channel::ControlRecord record;
                  record.kind = channel::ControlKind::kKillZygote;
                  record.pid = pid;
                  supervisor_->Send(record);
                }});
  }
  return *zygote;
}

void Fleet::OnSupervisor(const channel::ControlRecord& record, base::UniqueFd descriptor) {
  if (record.kind == channel::ControlKind::kZygoteStarted) {
    const auto at = zygotes_.find(record.runtime);
    if (at != zygotes_.end()) at->second->OnStarted(record.pid, std::move(descriptor));
  } else if (record.kind == channel::ControlKind::kProcessStopped) {
    if (Member* member = FindByPid(record.pid)) {
      Cell::Tell(member->cell, [](WorkerHandle& handle) { handle.OnProcessStopped(); });
    }
  } else if (record.kind == channel::ControlKind::kProcessEnded) {
    for (const auto& [runtime, zygote] : zygotes_) {
      const bool failed_start = record.pid == 0 && record.runtime == runtime;
      if (failed_start || (record.pid != 0 && zygote->pid() == record.pid)) {
        return zygote->OnEnded();
      }
    }
    OnProcessEnded(record.pid, record.wait_status);
  }
}

void Fleet::OnForked(uint64_t incarnation, int pid) {
  const auto at = members_.find(incarnation);
  if (at == members_.end()) return;
  at->second.pid = pid;
  const auto early = std::find_if(early_ends_.begin(), early_ends_.end(),
                                  [pid](const Ended& ended) { return ended.pid == pid; });
  if (early != early_ends_.end()) {
    const int wait_status = early->wait_status;
    early_ends_.erase(early);
    return OnProcessEnded(pid, wait_status);
  }
  if (at->second.kill_wanted) Kill(incarnation);
}

void Fleet::OnForkFailed(uint64_t incarnation, const absl::Status& status) {
  const auto at = members_.find(incarnation);
  if (at == members_.end()) return;
  loop::PostOrDie(at->second.cell->home, [cell = at->second.cell, status] {
    if (cell->handle != nullptr) return cell->handle->OnForkFailed(status);
    cell->observer->OnEnded(nullptr, WorkerObserver::End::kDied, status);
  });
}

// That a zygote died is no fault of the model: the worker is made anew, by another incarnation, and
// its observer hears nothing of it.
void Fleet::OnForkLost(uint64_t incarnation) {
  const auto at = members_.find(incarnation);
  if (at == members_.end()) return;
  Member& lost = at->second;
  if (lost.kill_wanted || lost.stop_wanted || lost.forks >= limits::kForkTriesMax) {
    return OnForkFailed(
        incarnation, absl::UnavailableError("no worker was made: the zygote died while it forked"));
  }
  const uint64_t next = last_incarnation_ + 1;
  absl::StatusOr<Made> made = MakeWorker(lost.spec, next);
  if (!made.ok()) return OnForkFailed(incarnation, made.status());
  last_incarnation_ = next;
  Member member{
      .spec = std::move(lost.spec), .cell = std::move(lost.cell), .forks = lost.forks + 1};
  members_.erase(at);
  by_key_[member.spec.key] = next;
  member.cell->incarnation = next;
  Adopt(next, std::move(member), *std::move(made));
}

void Fleet::OnProcessEnded(int pid, int wait_status) {
  Member* member = FindByPid(pid);
  if (member == nullptr) {
    // The supervisor may know before the zygote has told us.
    if (!Forking()) return;
    early_ends_.push_back({pid, wait_status});
    if (early_ends_.size() > limits::kEarlyEndsMax) early_ends_.pop_front();
    return;
  }
  member->pid = 0;
  Cell::Tell(member->cell,
             [wait_status](WorkerHandle& handle) { handle.OnProcessEnded(wait_status); });
}

void Fleet::Kill(uint64_t incarnation) {
  const auto at = members_.find(incarnation);
  if (at == members_.end()) return;
  Member& member = at->second;
  member.kill_wanted = true;
  if (member.pid == 0) return zygotes_.at(member.spec.key.runtime)->Forget(incarnation);
  channel::ControlRecord record;
  record.kind = channel::ControlKind::kKillWorker;
  record.pid = member.pid;
  supervisor_->Send(record);
}

void Fleet::Forget(uint64_t incarnation) {
  const auto at = members_.find(incarnation);
  if (at == members_.end()) return;
  if (at->second.out != nullptr) at->second.out->Finish();
  if (at->second.err != nullptr) at->second.err->Finish();
  const auto named = by_key_.find(at->second.spec.key);
  if (named != by_key_.end() && named->second == incarnation) by_key_.erase(named);
  members_.erase(at);
}

bool Fleet::Forking() const {
  return std::any_of(zygotes_.begin(), zygotes_.end(),
                     [](const auto& zygote) { return zygote.second->forking(); });
}

Fleet::Member* Fleet::FindByPid(int pid) {
  for (auto& [incarnation, member] : members_) {
    if (member.pid == pid && pid != 0) return &member;
  }
  return nullptr;
}

std::map<WorkerKey, int> Fleet::pids() const {
  std::map<WorkerKey, int> pids;
  for (const auto& [incarnation, member] : members_) {
    if (member.pid != 0) pids[member.spec.key] = member.pid;
  }
  return pids;
}

}  // namespace tensord::fleet
