// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/launch.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "obs/log.h"
#include "obs/log_lines.h"
#include "train/address.h"
#include "train/cgroup.h"
#include "train/environment.h"
#include "train/limits.h"
#include "train/meeting.h"
#include "train/processes.h"

namespace tensord::train {
namespace {

int64_t WallMilliseconds() { return absl::ToUnixMillis(base::WallTime()); }

Console::Setup TerminalOf(const std::vector<std::string>& environment) {
  return {.terminal = ValueOf(environment, "TERM"),
          .colours = ValueOf(environment, "NO_COLOR").empty()};
}

// The process of one agent: its ranks, its connection to the leader, or the leader itself.
class Launcher {
 public:
  Launcher(Launch launch, std::unique_ptr<loop::EventLoop> loop)
      : launch_(std::move(launch)),
        loop_(std::move(loop)),
        console_(TerminalOf(launch_.agent.environment)),
        agent_(launch_.agent, loop_.get(), &console_) {
    agent_.SetReporter([this](const Report& report) { Send(report); });
    if (console_.rewrites(STDERR_FILENO)) {
      // Our own lines scroll above the ranks' progress, too.
      obs::SendLinesTo([this](std::string_view line) { console_.Text(STDERR_FILENO, line); });
    }
  }
  ~Launcher() {
    obs::SendLinesTo(nullptr);
    loop_->Cancel(job_timer_);
    loop_->Cancel(flush_timer_);
  }

  int Run();

 private:
  absl::Status HearSignals();
  absl::Status Meet();
  void OnSignals();
  void OnInput();
  void OnStop(int signal);
  void Send(const Report& report);
  void Feed(const Event& event);
  void ArmJob();
  void Act(const Tell& tell);
  void Act(const Say& say);
  void Act(const Print& print) { console_.Text(STDERR_FILENO, print.text); }
  void Act(const End& end) { EndWith(end.code); }
  void Obey(const Command& command);
  void EndWith(int code);
  void FlushLater();

  const Launch launch_;
  const std::unique_ptr<loop::EventLoop> loop_;
  Console console_;
  Agent agent_;
  base::UniqueFd signals_;
  loop::EventLoop::Watch signal_watch_, input_watch_;
  std::optional<Job> job_;  // The leader's.
  std::unique_ptr<SecureSide> secure_;
  std::unique_ptr<Yielder> yielder_;
  std::unique_ptr<MeetingHost> host_;    // The leader's, with more machines than one.
  std::unique_ptr<MeetingGuest> guest_;  // The others'.
  loop::TimerId job_timer_ = 0;
  loop::TimerId flush_timer_ = 0;
  int stops_ = 0;
  std::optional<int> code_;
};

absl::Status Launcher::HearSignals() {
  ASSIGN_OR_RETURN(signals_, TakeSignals());
  signal_watch_ = loop_->Add(signals_.get(), EPOLLIN, [this](uint32_t) { OnSignals(); });
  if (launch_.watch_input) {
    input_watch_ = loop_->Add(STDIN_FILENO, EPOLLIN, [this](uint32_t) { OnInput(); });
  }
  return absl::OkStatus();
}

absl::Status Launcher::Meet() {
  if (!launch_.yield.address.empty()) {
    YieldSetup setup = launch_.yield;
    setup.can_weigh = SetGroupWeight(launch_.agent.group, kGroupWeight);
    yielder_ = std::make_unique<Yielder>(std::move(setup), loop_.get(),
                                         [this](Share share) { agent_.MakeRoom(share); });
    yielder_->Start();
  }
  if (launch_.leader) job_.emplace(launch_.policy, loop_->ClockNow());
  if (launch_.meeting.empty()) return absl::OkStatus();
  if (launch_.secure.given()) {
    ASSIGN_OR_RETURN(secure_, SecureSide::Create(launch_.secure));
  }
  if (!launch_.leader) {
    guest_ = std::make_unique<MeetingGuest>(
        MeetingGuest::Setup{.address = launch_.meeting,
                            .token = launch_.token,
                            .secure = secure_.get(),
                            .wait = launch_.policy.join_wait,
                            .joined = Joined{.address = launch_.address,
                                             .node_rank = launch_.node_rank,
                                             .ranks = launch_.agent.ranks,
                                             .facts = launch_.facts}},
        loop_.get());
    guest_->Start([this](const Command& command) { Obey(command); },
                  [this](const std::string& why, bool for_good) {
                    if (agent_.running()) obs::Error("{}: the ranks here are ended", why);
                    agent_.Abandon();
                    if (for_good) {
                      obs::Error("{}", why);
                      EndWith(1);
                    }
                  });
    return absl::OkStatus();
  }
  auto host = MeetingHost::Listen(launch_.meeting, launch_.token, secure_.get(), loop_.get());
  if (!host.ok()) return host.status();
  host_ = *std::move(host);
  host_->Start([this](const Event& event) { Feed(event); });
  obs::Info("waiting for the other machines at {}", launch_.meeting);
  return absl::OkStatus();
}

int Launcher::Run() {
  absl::Status status = HearSignals();
  if (status.ok()) status = Meet();
  if (!status.ok()) {
    obs::Error("{}", std::string(base::Message(status)));
    return 1;
  }
  if (job_.has_value()) {
    std::string address = launch_.address;
    if (address.empty()) address = launch_.meeting.empty() ? "127.0.0.1" : HostName();
    Joined joined{.address = address,
                  .node_rank = launch_.node_rank,
                  .ranks = launch_.agent.ranks,
                  .facts = launch_.facts};
    joined.facts.clock_ms = WallMilliseconds();
    Feed(FromNode{.node = 0, .report = joined, .clock_ms = joined.facts.clock_ms});
  }
  if (!code_.has_value()) loop_->Run();
  agent_.Abandon();
  console_.Flush(true);
  RemoveGroup(launch_.agent.group);  // Here as well: the guard may be gone.
  return code_.value_or(1);
}

void Launcher::OnSignals() {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) {
      agent_.Reap();
    } else if (signal == SIGUSR2) {
      EndWith(1);  // The guard was killed: nobody waits for a result.
    } else {
      OnStop(signal);
    }
  }
}

void Launcher::OnInput() {
  char bytes[256];
  const ssize_t got = read(STDIN_FILENO, bytes, sizeof(bytes));
  if (got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN))) return;
  input_watch_.Reset();
  OnStop(SIGTERM);
}

void Launcher::OnStop(int signal) {
  ++stops_;
  if (job_.has_value()) return Feed(StopRequested{signal});
  if (stops_ > 1 || !guest_->connected()) return EndWith(128 + signal);
  obs::Info("told to stop; the leader is asked to stop all");
  guest_->Send(StopWanted{signal});
}

void Launcher::Send(const Report& report) {
  if (guest_ != nullptr) return guest_->Send(report);
  Feed(FromNode{.node = 0, .report = report, .clock_ms = WallMilliseconds()});
}

void Launcher::Feed(const Event& event) {
  if (!job_.has_value()) return;
  // Reports that an action brings about follow it: Feed runs inside Feed only as a task.
  for (const Action& action : job_->On(event, loop_->ClockNow())) {
    std::visit([this](const auto& what) { Act(what); }, action);
  }
  ArmJob();
  FlushLater();
}

void Launcher::ArmJob() {
  loop_->Cancel(job_timer_);
  job_timer_ = 0;
  if (job_->Wake() == absl::InfiniteFuture()) return;
  job_timer_ = loop_->At(job_->Wake(), [this] { Feed(TimePassed{}); });
}

void Launcher::Act(const Tell& tell) {
  if (tell.node != 0) {
    if (host_ != nullptr) host_->Send(tell.node, tell.command);
    return;
  }
  // Later, so that what follows from it meets a job that has done with this.
  loop_->Defer([this, command = tell.command] { Obey(command); });
}

void Launcher::Act(const Say& say) {
  switch (say.severity) {
    case Severity::kInfo:
      obs::Info("{}", say.text);
      return;
    case Severity::kWarning:
      obs::Warn("{}", say.text);
      return;
    case Severity::kError:
      obs::Error("{}", say.text);
      return;
  }
}

void Launcher::Obey(const Command& command) {
  if (const auto* finish = std::get_if<Finish>(&command)) {
    if (guest_ == nullptr) return;  // Our own job says End as well.
    if (!finish->words.empty()) obs::Info("the leader says: {}", finish->words);
    return EndWith(finish->code);
  }
  agent_.Obey(command);
}

void Launcher::EndWith(int code) {
  if (!code_.has_value()) code_ = code;
  if (host_ != nullptr) host_->Flush();
  loop_->Stop();
}

void Launcher::FlushLater() {
  loop_->Cancel(flush_timer_);
  flush_timer_ = 0;
  console_.Flush();
  if (!console_.waiting()) return;
  flush_timer_ = loop_->At(loop_->ClockNow() + limits::kKillEvery, [this] { FlushLater(); });
}

}  // namespace

int Run(Launch launch) {
  auto loop = loop::EventLoop::Create();
  if (!loop.ok()) {
    obs::Error("{}", std::string(base::Message(loop.status())));
    return 1;
  }
  return Launcher(std::move(launch), *std::move(loop)).Run();
}

}  // namespace tensord::train
