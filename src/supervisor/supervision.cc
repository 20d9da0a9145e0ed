// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "supervisor/supervision.h"

#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/text.h"

namespace tensord::supervisor {
namespace {

using channel::ControlKind;

// 0 for the first death within the window: most are one-off, and clients wait.
absl::Duration RestartWait(size_t deaths) {
  if (deaths <= 1) return absl::ZeroDuration();
  absl::Duration wait = limits::kFrontRestartWaitMin;
  for (size_t i = 2; i < deaths && wait < limits::kFrontRestartWaitMax; ++i) wait *= 2;
  return std::min(wait, limits::kFrontRestartWaitMax);
}

}  // namespace

std::string DescribeEnd(int wait_status) {
  if (WIFEXITED(wait_status)) return base::Cat("exit code ", WEXITSTATUS(wait_status));
  const int signal = WTERMSIG(wait_status);
  return base::Cat("killed by signal ", signal, " (", strsignal(signal), ")",
                   WCOREDUMP(wait_status) ? ", core dumped" : "");
}

std::vector<Action> Supervision::On(const Event& event, absl::Time now) {
  if (phase_ == Phase::kDone) return {};
  std::visit([&](const auto& e) { Handle(e, now); }, event);
  return std::exchange(actions_, {});
}

absl::Time Supervision::Wake() const {
  const absl::Time wake =
      std::min({kill_front_at_, give_up_clearing_at_, ping_at_, front_silent_at_});
  return phase_ == Phase::kWaiting ? std::min(wake, restart_at_) : wake;
}

// Not inlined: GCC 12 takes the other alternatives of a variant for uninitialized there.
[[gnu::noinline]] void Supervision::Do(Action action) { actions_.push_back(std::move(action)); }

void Supervision::Handle(const Begin&, absl::Time) { Do(StartFront{}); }

void Supervision::Handle(const FrontStarted& event, absl::Time) {
  front_ = event.pid;
  phase_ = Phase::kServing;
  kill_front_at_ = absl::InfiniteFuture();
  // It begins with what the last one knew, which may be older than the signal.
  if (std::exchange(reloads_owed_, std::min(reloads_owed_, 1)) > 0) {
    Do(TellFront{.kind = ControlKind::kReload});
  }
}

void Supervision::Handle(const FrontNotStarted& event, absl::Time now) {
  FrontCrashed(event.reason, now);
}

void Supervision::Handle(const ZygoteStarted& event, absl::Time) {
  zygotes_[event.pid] = event.runtime;
  Do(TellFront{.kind = ControlKind::kZygoteStarted, .pid = event.pid, .runtime = event.runtime});
}

void Supervision::Handle(const ZygoteNotStarted& event, absl::Time) {
  constexpr int kCouldNotExec = 127 << 8;  // As a shell says it.
  Do(Say{Severity::kError,
         base::Cat("the zygote of runtime ", event.runtime, " cannot be started: ", event.reason)});
  Do(TellFront{
      .kind = ControlKind::kProcessEnded, .wait_status = kCouldNotExec, .runtime = event.runtime});
}

void Supervision::Handle(const ChildEnded& event, absl::Time now) {
  if (event.pid == front_) {
    FrontEnded(event.wait_status, now);
    return;
  }
  const auto zygote = zygotes_.find(event.pid);
  uint32_t runtime = 0;
  if (zygote != zygotes_.end()) {
    runtime = zygote->second;
    zygotes_.erase(zygote);
    // A front that has drained leaves, and its zygotes do; which of them is seen first is chance.
    const bool leaves = phase_ == Phase::kDraining && event.wait_status == 0;
    if (FrontLives() && !leaves) {
      Do(Say{Severity::kError, base::Cat("the zygote of runtime ", runtime, " (process ", event.pid,
                                         ") ended: ", DescribeEnd(event.wait_status))});
    }
  }
  if (FrontLives()) {
    Do(TellFront{.kind = ControlKind::kProcessEnded,
                 .pid = event.pid,
                 .wait_status = event.wait_status,
                 .runtime = runtime});
  }
  // One that was being forked when the others were killed shows up only now.
  if (phase_ == Phase::kClearing) Do(KillAll{});
}

void Supervision::Handle(const ChildStopped& event, absl::Time now) {
  if (event.pid == front_) {
    Do(Say{Severity::kWarning,
           base::Cat("the front (process ", event.pid,
                     ") is stopped and serves nothing; unless it gets SIGCONT it is killed in ",
                     absl::ToInt64Seconds(limits::kFrontStoppedMax), " s and started again")});
    Do(TellFront{.kind = ControlKind::kPing});
    front_silent_at_ = std::min(front_silent_at_, now + limits::kFrontStoppedMax);
    return;
  }
  // Nobody else can be continued usefully: what a stopped worker or zygote was to do is waited for.
  const auto zygote = zygotes_.find(event.pid);
  if (zygote != zygotes_.end()) {
    Do(Say{Severity::kError, base::Cat("the zygote of runtime ", zygote->second, " (process ",
                                       event.pid, ") was stopped by a signal; killing it")});
  }
  if (FrontLives()) Do(TellFront{.kind = ControlKind::kProcessStopped, .pid = event.pid});
  Do(KillOne{event.pid});
}

void Supervision::Handle(const AllGone&, absl::Time now) {
  if (phase_ == Phase::kClearing) Cleared(now);
}

void Supervision::Handle(const StopSignal& event, absl::Time now) {
  const char* name = event.signal == SIGINT ? "SIGINT" : "SIGTERM";
  // timeout(1) signals its child and then the whole group. People do not press keys that fast.
  constexpr absl::Duration kSameSignal = absl::Milliseconds(200);
  if (stop_signal_ != 0 && now - stop_signal_at_ < kSameSignal) return;
  if (stop_signal_ != 0) {
    Do(Say{Severity::kWarning, base::Cat("second ", name, ": ending at once")});
    EndWith(128 + event.signal);
    // A third one does not even wait for the processes, which die with the supervisor.
    if (phase_ == Phase::kClearing) give_up_clearing_at_ = now;
    ForgetFront();
    Clear(now);
    return;
  }
  stop_signal_ = event.signal;
  stop_signal_at_ = now;
  Do(NotifyStopping{});
  if (!FrontLives()) {
    if (!exit_code_.has_value()) EndWith(0);
    if (phase_ == Phase::kWaiting) Cleared(now);
    return;
  }
  Do(Say{Severity::kInfo,
         base::Cat(name, ": finishing what is in flight; a second one ends at once")});
  phase_ = Phase::kDraining;
  kill_front_at_ = now + drain_ + limits::kDrainMargin;
  Do(TellFront{.kind = ControlKind::kDrain});
}

void Supervision::Handle(const ReloadSignal&, absl::Time) {
  ++reloads_owed_;
  if (FrontLives()) Do(TellFront{.kind = ControlKind::kReload});
}

void Supervision::Handle(const FrontAsks& event, absl::Time now) {
  const channel::ControlRecord& record = event.record;
  HeardFromFront(now);
  switch (record.kind) {
    case ControlKind::kStartZygote:
      Do(StartZygote{record.runtime, record.onednn, record.engine});
      return;
    case ControlKind::kKillWorker:
      if (record.pid > 1 && record.pid != front_ && !zygotes_.contains(record.pid)) {
        Do(KillOne{record.pid});
      }
      return;
    case ControlKind::kKillZygote:
      if (const auto zygote = zygotes_.find(record.pid); zygote != zygotes_.end()) {
        Do(Say{Severity::kError, base::Cat("the zygote of runtime ", zygote->second, " (process ",
                                           record.pid, ") does not answer: it hangs; killing it")});
        Do(KillOne{record.pid});
      }
      return;
    case ControlKind::kPong:
    case ControlKind::kKeep:
      return;
    case ControlKind::kReloaded:
      reloads_owed_ = std::max(0, reloads_owed_ - 1);
      return;
    case ControlKind::kFrontReady:
      if (!std::exchange(was_ready_, true)) Do(NotifyReady{});
      return;
    default:
      Condemn(base::Cat("the front sent a record of unknown kind ",
                        static_cast<uint32_t>(record.kind), "; killing it"));
  }
}

void Supervision::Handle(const FrontHungUp&, absl::Time now) {
  if (!FrontLives()) return;
  kill_front_at_ = std::min(kill_front_at_, now + limits::kFrontHangUpMax);
}

void Supervision::Handle(const FrontMisbehaved& event, absl::Time) {
  if (!FrontLives()) return;
  Condemn(base::Cat("killing the front: ", event.reason));
}

void Supervision::Handle(const TimePassed&, absl::Time now) {
  if (FrontLives() && kill_front_at_ <= now) {
    kill_front_at_ = absl::InfiniteFuture();
    if (phase_ == Phase::kDraining) EndWith(1);
    Condemn(phase_ == Phase::kDraining ? "the front did not finish in the drain time; killing it"
                                       : "the front closed its socket and did not end; killing it");
  }
  if (FrontLives() && front_silent_at_ <= now) {
    front_silent_at_ = absl::InfiniteFuture();
    Condemn("killing the front: it gives no sign of life; it hangs, or stays stopped");
  }
  if (FrontLives() && ping_at_ <= now) {
    ping_at_ = absl::InfiniteFuture();
    front_silent_at_ = std::min(front_silent_at_, now + limits::kFrontSilenceMax);
    Do(TellFront{.kind = ControlKind::kPing});
  }
  if (phase_ == Phase::kClearing && give_up_clearing_at_ <= now) {
    Do(Say{Severity::kError, "some processes do not end although they were killed; going on"});
    Cleared(now);
  }
  if (phase_ == Phase::kWaiting && restart_at_ <= now) {
    restart_at_ = absl::InfiniteFuture();
    Do(StartFront{.was_ready = was_ready_});
  }
}

void Supervision::Condemn(std::string why) {
  condemned_ = true;
  Do(Say{Severity::kError, std::move(why)});
  Do(KillOne{front_});
}

// From its first word on the front is watched: before that it reads its configuration.
void Supervision::HeardFromFront(absl::Time now) {
  if (!FrontLives()) return;
  front_silent_at_ = absl::InfiniteFuture();
  ping_at_ = now + limits::kFrontPingEvery;
}

void Supervision::ForgetFront() {
  front_ = 0;
  kill_front_at_ = absl::InfiniteFuture();
  ping_at_ = absl::InfiniteFuture();
  front_silent_at_ = absl::InfiniteFuture();
}

void Supervision::FrontEnded(int wait_status, absl::Time now) {
  ForgetFront();
  const bool condemned = std::exchange(condemned_, false);
  const bool may_end = !was_ready_ || stop_signal_ != 0;
  if (WIFEXITED(wait_status) && !condemned && may_end) {
    // It ended because it decided to: drained, or it cannot start and has said why. Once the server
    // has served, only a signal ends it.
    if (!exit_code_.has_value()) EndWith(WEXITSTATUS(wait_status));
    Clear(now);
  } else if (stop_signal_ != 0) {
    Do(Say{Severity::kError,
           base::Cat("the front ended while it drained: ", DescribeEnd(wait_status))});
    if (!exit_code_.has_value()) {
      EndWith(WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : 1);
    }
    Clear(now);
  } else {
    FrontCrashed(DescribeEnd(wait_status), now);
  }
}

void Supervision::FrontCrashed(const std::string& how, absl::Time now) {
  front_deaths_.push_back(now);
  while (front_deaths_.front() <= now - limits::kFrontDeathsWindow) front_deaths_.pop_front();
  const size_t deaths = front_deaths_.size();
  if (deaths > limits::kFrontDeathsMax) {
    Do(Say{Severity::kError,
           base::Cat("the front ended ", deaths, " times within ",
                     absl::ToInt64Seconds(limits::kFrontDeathsWindow), " s, last: ", how,
                     "; giving up. The lines above say what it was doing")});
    EndWith(1);
  } else {
    Do(Say{Severity::kError,
           base::Cat("the front ended: ", how, "; starting it again, and the models with it")});
    restart_at_ = now + RestartWait(deaths);
  }
  Clear(now);
}

void Supervision::Clear(absl::Time now) {
  phase_ = Phase::kClearing;
  kill_front_at_ = absl::InfiniteFuture();
  give_up_clearing_at_ = std::min(give_up_clearing_at_, now + limits::kKillWaitMax);
  Do(KillAll{});
}

void Supervision::Cleared(absl::Time now) {
  give_up_clearing_at_ = absl::InfiniteFuture();
  zygotes_.clear();
  if (exit_code_.has_value()) {
    phase_ = Phase::kDone;
    restart_at_ = absl::InfiniteFuture();
    Do(Exit{*exit_code_});
    return;
  }
  phase_ = Phase::kWaiting;
  if (restart_at_ <= now) {
    restart_at_ = absl::InfiniteFuture();
    Do(StartFront{.was_ready = was_ready_});
  }
}

}  // namespace tensord::supervisor
