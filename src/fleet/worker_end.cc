// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/text.h"
#include "fleet/death.h"
#include "fleet/worker_handle.h"

// The ways in which a worker ends.
namespace tensord::fleet {

void WorkerHandle::Stop() {
  if (state_ == State::kEnded || stop_asked_) return;
  stop_asked_ = true;
  if (state_ == State::kStarting || state_ == State::kLoading) return Kill("it is not wanted");
  if (state_ != State::kReady) return;
  Flush();
  SendRecord(channel::StopRecord{});
  absl::Time last = loop_.Now();
  for (const auto& [id, out] : out_) last = std::max(last, out.deadline);
  stop_by_ = last + limits::kStopGrace;
  KeepWatch();
}

void WorkerHandle::Seal(SealDone done) {
  TENSORD_CHECK(out_.empty() && !seal_done_);
  seal_done_ = std::move(done);
  seal_sent_ = loop_.Now();
  SendRecord(channel::SealRecord{});
  KeepWatch();
}

void WorkerHandle::OnSealed(const channel::SealedRecord& record) {
  if (!seal_done_ || state_ != State::kReady) return Violation("a seal that nobody asked for");
  seal_sent_ = absl::InfiniteFuture();
  SealDone done = std::exchange(seal_done_, nullptr);
  if (!stop_asked_) done(record);  // Else nobody wants it any more.
}

void WorkerHandle::OnDying() {
  state_ = State::kDying;
  watch_.Reset();
  // Without last words it was SIGKILL or an exit: its own doing, the machine's or an operator's.
  FailRuns(absl::UnavailableError(
               base::Cat(Name(), " died", DescribeLastWords(last_words_), "; try again")),
           last_words_.signal != 0 ? Cause::kRun : Cause::kUnknown);
}

void WorkerHandle::OnProcessEnded(int wait_status) {
  if (state_ == State::kEnded) return;
  if (watch_.active()) OnReadable();  // Its last records may wait unread.
  if (state_ == State::kEnded) return;
  const bool exited = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
  if (stop_asked_ && (exited || !why_killed_.empty()))
    return End(WorkerObserver::End::kStopped, absl::OkStatus());
  std::string how = DescribeEnd(wait_status) + DescribeForbidden(last_words_);
  if (!why_killed_.empty()) how += base::Cat(", because ", why_killed_);
  End(WorkerObserver::End::kDied,
      absl::UnavailableError(base::Cat(Name(), " died: ", how, "; try again")));
}

void WorkerHandle::OnProcessStopped() { Kill("it was stopped by a signal"); }

void WorkerHandle::OnForkFailed(const absl::Status& status) {
  if (state_ == State::kEnded) return;
  End(stop_asked_ ? WorkerObserver::End::kStopped : WorkerObserver::End::kDied, status);
}

void WorkerHandle::Violation(std::string_view what) {
  Kill(base::Cat("it broke the channel's rules: ", what), Cause::kRun);
}

void WorkerHandle::Kill(std::string_view why, Cause cause) {
  if (state_ == State::kEnded) return;
  if (why_killed_.empty()) why_killed_ = why;
  state_ = State::kDying;
  watch_.Reset();
  kill_();
  FailRuns(absl::UnavailableError(base::Cat(Name(), " was ended: ", why_killed_, "; try again")),
           cause);
}

void WorkerHandle::End(WorkerObserver::End end, const absl::Status& reason) {
  state_ = State::kEnded;
  watch_.Reset();
  loop_.Cancel(watchdog_);
  loop_.Cancel(demand_timer_);
  FailRuns(
      reason.ok() ? absl::UnavailableError(base::Cat(Name(), " has ended; try again")) : reason,
      stop_asked_ ? Cause::kOurs : Cause::kUnknown);
  loop_.Defer([self = self_, end, reason] {
    if (*self != nullptr) (*self)->observer_->OnEnded(*self, end, reason);
  });
}

// Outcomes go out deferred: a caller may be inside Submit, or may destroy this from a `done`.
void WorkerHandle::FailRuns(const absl::Status& status, Cause cause) {
  pending_.clear();
  for (auto& [id, out] : std::exchange(out_, {})) {
    loop_.Defer([done = std::move(out.done), status, cause]() mutable {
      done({.status = status,
            .worker_lost = true,
            .crashed = cause == Cause::kRun,
            .unexplained = cause == Cause::kUnknown});
    });
  }
}

void WorkerHandle::Abandon(uint64_t name, absl::Time kill_at) {
  for (auto& [id, out] : out_) {
    if (out.name != name || kill_at >= out.kill_at) continue;
    out.kill_at = kill_at;
    out.abandoned = true;
  }
}

void WorkerHandle::KeepWatch() {
  if (watchdog_ != 0) return;
  watch_due_ = loop_.Now() + limits::kHeartbeatEvery;
  watchdog_ = loop_.At(watch_due_, [this] { Watch(); });
}

void WorkerHandle::Watch() {
  watchdog_ = 0;
  heartbeats_ = 0;
  const absl::Time now = loop_.Now();
  // This process was held up, by a machine that slept perhaps: the worker was, too.
  if (now > watch_due_ + limits::kHeartbeatLost / 2) last_heard_ = now;
  CheckTimes(now);
  const bool idle = state_ == State::kReady && out_.empty() && !stop_asked_ &&
                    renewal_sent_ == absl::InfiniteFuture() && seal_sent_ == absl::InfiniteFuture();
  if (state_ != State::kEnded && !idle) KeepWatch();
}

// Looks after everything that has a limit in time.
void WorkerHandle::CheckTimes(absl::Time now) {
  // A process that closed its channel may still run, and a request to kill it may have been lost.
  if (state_ == State::kDying) return kill_();
  if ((state_ == State::kStarting || state_ == State::kLoading) &&
      now > started_ + parts_.load_wait_max) {
    return Kill(base::Cat("its model did not load within ",
                          absl::FormatDuration(parts_.load_wait_max),
                          " (load_timeout_ms in the model's settings)"));
  }
  if (now > stop_by_) return Kill("it did not stop when it was told to");
  if (now > renewal_sent_ + limits::kHeartbeatLost) return Kill("it does not take its segments");
  if (now > seal_sent_ + limits::kHeartbeatLost) return Kill("it does not seal itself");
  if (out_.empty()) return;
  if (now > last_heard_ + limits::kHeartbeatLost) {
    return Kill("it stopped answering", Cause::kRun);
  }
  for (const auto& [id, out] : out_) {
    if (now <= out.kill_at) continue;
    const bool late = now > out.deadline + limits::kRunOverrun;
    return Kill(late            ? "a run went on long after its deadline"
                : out.abandoned ? "a run went on long after nobody waited for it any more"
                                : "a run took longer than the model's run_timeout_ms",
                Cause::kRun);
  }
}

}  // namespace tensord::fleet
