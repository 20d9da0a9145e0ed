// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "channel/control.h"

// What the supervisor decides, without a system call: events in, actions out. supervisor.h carries
// the actions out.
namespace tensord::supervisor {

// ---- What happened ------------------------------------------------------------------------------

struct Begin {};
struct FrontStarted {
  pid_t pid = 0;
};
struct FrontNotStarted {
  std::string reason;
};
struct ZygoteStarted {
  uint32_t runtime = 0;
  pid_t pid = 0;
};
struct ZygoteNotStarted {
  uint32_t runtime = 0;
  std::string reason;
};
// A child was reaped, whoever it was.
struct ChildEnded {
  pid_t pid = 0;
  int wait_status = 0;
};
struct ChildStopped {
  pid_t pid = 0;
};
// No process of ours is left: the answer to KillAll.
struct AllGone {};
// SIGTERM or SIGINT came. Those that come right after the first, as timeout(1) sends two, are the
// same one.
struct StopSignal {
  int signal = 0;
};
// SIGHUP came.
struct ReloadSignal {};
// A well-formed record from the front.
struct FrontAsks {
  channel::ControlRecord record;
};
// The front closed its socket; it ends soon, or hangs.
struct FrontHungUp {};
// The front did what no front of this build does, or does not read what it is sent.
struct FrontMisbehaved {
  std::string reason;
};
// Wake() is past.
struct TimePassed {};

using Event = std::variant<Begin, FrontStarted, FrontNotStarted, ZygoteStarted, ZygoteNotStarted,
                           ChildEnded, ChildStopped, AllGone, StopSignal, ReloadSignal, FrontAsks,
                           FrontHungUp, FrontMisbehaved, TimePassed>;

// ---- What to do ---------------------------------------------------------------------------------

// Answered by FrontStarted or FrontNotStarted.
struct StartFront {
  bool was_ready = false;  // Another was before it: it must not wait for its models to serve.
  bool operator==(const StartFront&) const = default;
};
// Answered by ZygoteStarted or ZygoteNotStarted.
struct StartZygote {
  uint32_t runtime = 0;
  channel::OneDnn onednn = channel::OneDnn::kAuto;
  channel::EngineKind engine = channel::EngineKind::kTensorFlow;
  bool operator==(const StartZygote&) const = default;
};
// SIGKILL, if it is a child of ours.
struct KillOne {
  pid_t pid = 0;
  bool operator==(const KillOne&) const = default;
};
// SIGKILL for every child of ours that there is now. Answered by AllGone, once none is left.
struct KillAll {
  bool operator==(const KillAll&) const = default;
};
// With kZygoteStarted the front's end of the zygote's socket rides along. A zygote that could not
// be started is a kProcessEnded of pid 0.
struct TellFront {
  channel::ControlKind kind{};
  pid_t pid = 0;
  int wait_status = 0;
  uint32_t runtime = 0;
  bool operator==(const TellFront&) const = default;
};
// To the service manager.
struct NotifyReady {
  bool operator==(const NotifyReady&) const = default;
};
struct NotifyStopping {
  bool operator==(const NotifyStopping&) const = default;
};
enum class Severity { kInfo, kWarning, kError };
struct Say {
  Severity severity = Severity::kInfo;
  std::string text{};
  bool operator==(const Say&) const = default;
};
// Nothing is left, or nothing more can be done about it.
struct Exit {
  int code = 0;
  bool operator==(const Exit&) const = default;
};

using Action = std::variant<StartFront, StartZygote, KillOne, KillAll, TellFront, NotifyReady,
                            NotifyStopping, Say, Exit>;

// ---- The decisions ------------------------------------------------------------------------------

// "killed by signal 11 (Segmentation fault)" or "exit code 3", of a status as waitpid gave it.
std::string DescribeEnd(int wait_status);

// Exit codes: the front's own when it ended by exiting, unless it had served and nobody had asked
// it to end: that is a crash; 128 + the signal when a second stop signal came, or when the front
// crashed while it drained; 1 when the front crashes in a loop, or did not end in time after the
// first stop signal.
class Supervision {
 public:
  // `drain` is how long the front may take from kDrain on: lame duck and drain time together.
  explicit Supervision(absl::Duration drain) : drain_(drain) {}

  std::vector<Action> On(const Event& event, absl::Time now);
  // When to send TimePassed at the latest.
  absl::Time Wake() const;

 private:
  enum class Phase {
    kServing,   // The front runs.
    kDraining,  // The front runs, and was told to end.
    kClearing,  // The front is gone; waiting until the other processes are.
    kWaiting,   // All are gone; the next front starts at restart_at_.
    kDone,
  };

  void Handle(const Begin&, absl::Time now);
  void Handle(const FrontStarted& event, absl::Time now);
  void Handle(const FrontNotStarted& event, absl::Time now);
  void Handle(const ZygoteStarted& event, absl::Time now);
  void Handle(const ZygoteNotStarted& event, absl::Time now);
  void Handle(const ChildEnded& event, absl::Time now);
  void Handle(const ChildStopped& event, absl::Time now);
  void Handle(const AllGone&, absl::Time now);
  void Handle(const StopSignal& event, absl::Time now);
  void Handle(const ReloadSignal&, absl::Time now);
  void Handle(const FrontAsks& event, absl::Time now);
  void Handle(const FrontHungUp&, absl::Time now);
  void Handle(const FrontMisbehaved& event, absl::Time now);
  void Handle(const TimePassed&, absl::Time now);

  void FrontEnded(int wait_status, absl::Time now);
  void HeardFromFront(absl::Time now);
  void ForgetFront();
  // Says why and kills the front. However it ends then, it crashed.
  void Condemn(std::string why);
  // A death that nobody asked for: start again after a while, or give up.
  void FrontCrashed(const std::string& how, absl::Time now);
  void EndWith(int code) { exit_code_ = code; }
  void Clear(absl::Time now);
  void Cleared(absl::Time now);
  bool FrontLives() const { return front_ != 0; }
  void Do(Action action);

  absl::Duration drain_;

  Phase phase_ = Phase::kServing;
  pid_t front_ = 0;
  std::map<pid_t, uint32_t> zygotes_;    // To their runtimes.
  std::deque<absl::Time> front_deaths_;  // Within kFrontDeathsWindow.
  bool condemned_ = false;               // The front, by Condemn.
  bool was_ready_ = false;
  int reloads_owed_ = 0;  // SIGHUPs that no front has said it is done with.
  int stop_signal_ = 0;   // The first one; 0: none came.
  absl::Time stop_signal_at_ = absl::InfinitePast();
  std::optional<int> exit_code_;  // Set: end with it once all are gone.
  absl::Time restart_at_ = absl::InfiniteFuture();
  absl::Time kill_front_at_ = absl::InfiniteFuture();  // Drained too long, or hung up and stayed.
  absl::Time give_up_clearing_at_ = absl::InfiniteFuture();
  absl::Time ping_at_ = absl::InfiniteFuture();          // The front is asked for a sign of life.
  absl::Time front_silent_at_ = absl::InfiniteFuture();  // It has given none by then: it hangs.
  std::vector<Action> actions_;
};

}  // namespace tensord::supervisor
