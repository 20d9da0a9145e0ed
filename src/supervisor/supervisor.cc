// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "channel/memory_file.h"
#include "channel/packet_socket.h"
#include "obs/log.h"
#include "supervisor/children.h"
#include "supervisor/notify.h"
#include "supervisor/supervision.h"

namespace tensord::supervisor {
namespace {

using channel::ControlKind;
using channel::ControlRecord;
using channel::PacketSocket;

// A record for the front that its socket did not take yet.
struct Unsent {
  std::string bytes;
  base::UniqueFd descriptor;  // Rides along, when valid.
};

// The hands of Supervision: turns the kernel's news into events and carries actions out.
class Supervisor {
 public:
  Supervisor(const Setup& setup, base::UniqueFd signals, std::set<pid_t> strangers)
      : setup_(setup),
        signals_(std::move(signals)),
        strangers_(std::move(strangers)),
        supervision_(setup.drain) {}

  int Run();

 private:
  // Decides and acts until nothing follows from what was done.
  void Feed(Event event);
  void WaitForNews();
  void ReadSignals();
  void Reap();
  void ReadFront();
  // Takes what the front wants the next one to have. INVALID_ARGUMENT when it may not be kept.
  absl::Status Keep(std::vector<base::UniqueFd> descriptors);
  void Flush();
  void HangUp();

  void Act(const StartFront& action);
  void Act(const StartZygote& action);
  void Act(const KillOne& action);
  void Act(const KillAll&);
  void Act(const TellFront& action);
  void Act(const NotifyReady&);
  void Act(const NotifyStopping&);
  void Act(const Say& action);
  void Act(const Exit& action) { exit_code_ = action.code; }

  // Children but the strangers.
  std::set<pid_t> Ours() const;
  absl::Time Now() const { return base::MonotonicClock().Now(); }

  const Setup& setup_;
  const base::UniqueFd signals_;
  std::set<pid_t> strangers_;

  Supervision supervision_;
  std::deque<Event> events_;
  bool acting_ = false;
  bool clearing_ = false;  // Somebody waits for AllGone.
  std::optional<PacketSocket> front_;
  base::UniqueFd kept_;  // For the next front; it outlives this one.
  std::deque<Unsent> unsent_;
  std::map<pid_t, base::UniqueFd> zygote_sockets_;  // The front's ends, until they are sent.
  std::optional<int> exit_code_;
};

int Supervisor::Run() {
  Feed(Begin{});
  while (!exit_code_.has_value()) WaitForNews();
  return *exit_code_;
}

void Supervisor::Feed(Event event) {
  events_.push_back(std::move(event));
  if (acting_) return;
  acting_ = true;
  while (!events_.empty()) {
    const Event next = std::move(events_.front());
    events_.pop_front();
    for (const Action& action : supervision_.On(next, Now())) {
      std::visit([&](const auto& a) { Act(a); }, action);
    }
  }
  acting_ = false;
}

void Supervisor::WaitForNews() {
  const absl::Duration wait = supervision_.Wake() - Now();
  int milliseconds = -1;
  if (wait != absl::InfiniteDuration()) {
    // Rounded up, so that the time is past when poll returns.
    const int64_t whole = absl::ToInt64Milliseconds(wait) + 1;
    milliseconds = static_cast<int>(std::clamp<int64_t>(whole, 0, 1'000'000));
  }
  const short front_events = unsent_.empty() ? POLLIN : POLLIN | POLLOUT;
  pollfd fds[] = {
      {.fd = signals_.get(), .events = POLLIN, .revents = 0},
      {.fd = front_.has_value() ? front_->fd() : -1, .events = front_events, .revents = 0},
  };
  if (poll(fds, 2, milliseconds) < 0 && errno != EINTR) {
    obs::Error("poll: {}", std::strerror(errno));
  }
  if ((fds[1].revents & POLLOUT) != 0) Flush();
  // Before the signals: the last words of a front come before its death.
  if ((fds[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0) ReadFront();
  if ((fds[0].revents & POLLIN) != 0) ReadSignals();
  if (supervision_.Wake() <= Now()) Feed(TimePassed{});
}

void Supervisor::ReadSignals() {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGTERM || signal == SIGINT) {
      Reap();  // A front that crashed just before did not crash while it drained.
      Feed(StopSignal{signal});
    }
    if (signal == SIGHUP) Feed(ReloadSignal{});
    if (signal == SIGCHLD) Reap();
  }
}

void Supervisor::Reap() {
  while (true) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED);
    if (pid <= 0) break;
    if (WIFSTOPPED(status)) {
      Feed(ChildStopped{pid});
      continue;
    }
    ReadFront();  // What it sent before it died counts.
    strangers_.erase(pid);
    zygote_sockets_.erase(pid);
    Feed(ChildEnded{.pid = pid, .wait_status = status});
  }
  if (clearing_ && Ours().empty()) {
    clearing_ = false;
    Feed(AllGone{});
  }
}

std::set<pid_t> Supervisor::Ours() const {
  std::set<pid_t> ours = Children();
  std::erase_if(ours, [&](pid_t pid) { return strangers_.contains(pid); });
  return ours;
}

void Supervisor::ReadFront() {
  while (front_.has_value()) {
    auto packet = front_->Receive(sizeof(ControlRecord), 1);
    if (absl::IsNotFound(packet.status())) return;
    if (absl::IsUnavailable(packet.status())) {
      HangUp();
      Feed(FrontHungUp{});
      return;
    }
    ControlRecord record;
    absl::Status kept;
    if (packet.ok() && packet->bytes.size() == sizeof(record)) {
      std::memcpy(&record, packet->bytes.data(), sizeof(record));
      if (record.magic == channel::kControlMagic) {
        if (record.kind == ControlKind::kKeep) kept = Keep(std::move(packet->descriptors));
        if (kept.ok()) {
          Feed(FrontAsks{record});
          continue;
        }
      }
    }
    Feed(FrontMisbehaved{
        kept.ok() ? "it sent a record that is none"
                  : base::Cat("what it left for the next front: ", base::Message(kept))});
    HangUp();
  }
}

absl::Status Supervisor::Keep(std::vector<base::UniqueFd> descriptors) {
  if (descriptors.empty()) {
    kept_.Reset();
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(channel::CheckSealed(descriptors.front().get(), channel::kKeptBytesMax));
  // The number is the next front's, too, which has another use for the lowest ones.
  kept_.Reset(fcntl(descriptors.front().get(), F_DUPFD_CLOEXEC, kLowestDescriptor));
  return absl::OkStatus();
}

void Supervisor::HangUp() {
  front_.reset();
  unsent_.clear();
}

void Supervisor::Flush() {
  while (front_.has_value() && !unsent_.empty()) {
    Unsent& next = unsent_.front();
    std::vector<int> descriptors;
    if (next.descriptor.valid()) descriptors.push_back(next.descriptor.get());
    const absl::Status status = front_->Send(next.bytes, descriptors);
    if (absl::IsResourceExhausted(status)) return;
    if (!status.ok()) {
      HangUp();
      Feed(FrontHungUp{});
      return;
    }
    unsent_.pop_front();
  }
}

void Supervisor::Act(const StartFront& action) {
  auto pair = PacketSocket::Pair();
  if (!pair.ok()) {
    Feed(FrontNotStarted{std::string(base::Message(pair.status()))});
    return;
  }
  FrontSockets sockets = setup_.sockets;
  if (action.was_ready) sockets.listen_when_loaded = false;  // They listen already.
  sockets.kept_fd = kept_.get();
  Program program = setup_.front;
  program.arguments.push_back(EncodeFrontSockets(sockets));
  std::vector<int> inherited = setup_.front_descriptors;
  if (kept_.valid()) inherited.push_back(kept_.get());
  const absl::StatusOr<pid_t> pid = Start(program, pair->second.fd(), inherited);
  if (!pid.ok()) {
    Feed(FrontNotStarted{std::string(base::Message(pid.status()))});
    return;
  }
  HangUp();
  front_.emplace(std::move(pair->first));
  front_->SetNonBlocking();
  obs::Debug("front started: process {}", *pid);
  Feed(FrontStarted{*pid});
}

void Supervisor::Act(const StartZygote& action) {
  auto pair = PacketSocket::Pair();
  absl::StatusOr<pid_t> pid = 0;
  if (pair.ok()) {
    const bool lite = action.engine == channel::EngineKind::kLiteRt;
    Program program = lite ? setup_.litert_zygote : setup_.zygote;
    program.environment = ZygoteEnvironment(std::move(program.environment), action.onednn);
    pid = Start(program, pair->second.fd(), {});
  }
  if (!pair.ok() || !pid.ok()) {
    const absl::Status& status = pair.ok() ? pid.status() : pair.status();
    Feed(ZygoteNotStarted{action.runtime, std::string(base::Message(status))});
    return;
  }
  zygote_sockets_[*pid] = base::UniqueFd(fcntl(pair->first.fd(), F_DUPFD_CLOEXEC, 0));
  obs::Debug("zygote of runtime {} started: process {}", action.runtime, *pid);
  Feed(ZygoteStarted{action.runtime, *pid});
}

void Supervisor::Act(const KillOne& action) {
  if (IsChild(action.pid)) kill(action.pid, SIGKILL);
}

void Supervisor::Act(const KillAll&) {
  HangUp();
  zygote_sockets_.clear();
  const std::set<pid_t> ours = Ours();
  for (const pid_t pid : ours) kill(pid, SIGKILL);
  clearing_ = !ours.empty();
  if (!clearing_) Feed(AllGone{});
}

void Supervisor::Act(const TellFront& action) {
  if (!front_.has_value()) return;
  ControlRecord record;
  record.kind = action.kind;
  record.pid = action.pid;
  record.wait_status = action.wait_status;
  record.runtime = action.runtime;
  Unsent unsent{.bytes = std::string(sizeof(record), '\0'), .descriptor = {}};
  std::memcpy(unsent.bytes.data(), &record, sizeof(record));
  if (action.kind == ControlKind::kZygoteStarted) {
    unsent.descriptor = std::move(zygote_sockets_[action.pid]);
    zygote_sockets_.erase(action.pid);
  }
  unsent_.push_back(std::move(unsent));
  Flush();
  if (unsent_.size() > limits::kFrontBacklogMax) {
    unsent_.clear();
    Feed(FrontMisbehaved{"it does not read what it is sent; it hangs"});
  }
}

void Supervisor::Act(const NotifyReady&) {
  for (const std::string& line : setup_.ready) obs::Info("{}", line);
  NotifyServiceManager(setup_.notify_socket, "READY=1");
}

void Supervisor::Act(const NotifyStopping&) {
  NotifyServiceManager(setup_.notify_socket, "STOPPING=1");
}

void Supervisor::Act(const Say& action) {
  switch (action.severity) {
    case Severity::kInfo:
      obs::Info("{}", action.text);
      return;
    case Severity::kWarning:
      obs::Warn("{}", action.text);
      return;
    case Severity::kError:
      obs::Error("{}", action.text);
      return;
  }
}

absl::Status KernelError(const char* call) {
  return absl::InternalError(base::Cat(call, ": ", std::strerror(errno)));
}

// Signals arrive through a descriptor; a blocked one reaches even PID 1, which has no defaults.
absl::StatusOr<base::UniqueFd> TakeSignals() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&taken, signal);
  if (sigprocmask(SIG_BLOCK, &taken, nullptr) != 0) return KernelError("sigprocmask");
  base::UniqueFd fd(signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd.valid()) return KernelError("signalfd");
  signal(SIGCHLD,
         SIG_DFL);  // Whoever started us may have ignored it: then nothing could be reaped.
  // Likewise in the processes we start: a closed or full log must kill nobody.
  for (const int signal_number : {SIGPIPE, SIGXFSZ}) signal(signal_number, SIG_IGN);
  return fd;
}

}  // namespace

absl::StatusOr<int> Supervise(const Setup& setup) {
  ASSIGN_OR_RETURN(base::UniqueFd signals, TakeSignals());
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return KernelError("PR_SET_CHILD_SUBREAPER");
  Supervisor supervisor(setup, std::move(signals), Children());
  return supervisor.Run();
}

}  // namespace tensord::supervisor
