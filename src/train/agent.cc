// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/agent.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/status_macros.h"
#include "base/text.h"
#include "obs/log.h"
#include "train/cgroup.h"
#include "train/limits.h"
#include "train/processes.h"
#include "train/rank_process.h"
#include "train/status.h"

namespace tensord::train {
namespace {

constexpr absl::Duration kLookEvery = absl::Milliseconds(500);
constexpr absl::Duration kPauseFor = absl::Milliseconds(300);
constexpr absl::Duration kRunFor = absl::Milliseconds(100);
constexpr std::string_view kStatusFile = "status.json";
// The injected help writes all stacks when it gets this; nobody else uses it.
const int kDumpSignal = SIGRTMIN + 6;

std::string FileName(std::string name) {
  std::replace(name.begin(), name.end(), '/', '_');
  return base::Cat(name, ".log");
}

}  // namespace

Agent::Agent(AgentSetup setup, loop::EventLoop* loop, Console* console)
    : setup_(std::move(setup)), loop_(loop), console_(console) {}

Agent::~Agent() {
  for (const loop::TimerId timer : {look_timer_, grace_timer_, kill_timer_, pulse_timer_}) {
    loop_->Cancel(timer);
  }
}

void Agent::Obey(const Command& command) {
  std::visit([this](const auto& what) { Do(what); }, command);
}

void Agent::Arm(absl::Duration wait, loop::TimerId* timer, loop::Task task) {
  loop_->Cancel(*timer);
  *timer = loop_->At(loop_->ClockNow() + wait, std::move(task));
}

void Agent::Do(const Prepare& prepare) {
  // Ports of the last generation stay taken until new ones are, so that none comes twice.
  std::vector<ReservedPort> ports;
  Ready ready{.generation = prepare.generation, .ports = {}, .error = {}};
  for (int i = 0; i < setup_.ranks && ready.error.empty(); ++i) {
    auto port = ReservedPort::Take();
    const absl::Status status = port.ok() ? port->Listen() : port.status();
    if (!status.ok()) {
      ready.error = base::Message(status);
      break;
    }
    ready.ports.push_back(base::Cat(port->port()));
    ports.push_back(*std::move(port));
  }
  ports_ = std::move(ports);
  generation_ = prepare.generation;
  report_(ready);
}

void Agent::Do(const Probe& probe) {
  Probed probed{
      .generation = probe.generation, .unreachable = Unreachable(probe.addresses), .marks = {}};
  std::error_code error;
  if (!setup_.checkpoint_dir.empty()) {
    for (const auto& entry : std::filesystem::directory_iterator(setup_.checkpoint_dir, error)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(".tensord_check_")) probed.marks.push_back(name);
    }
  }
  report_(probed);
}

void Agent::Do(const StartRanks& start) {
  generation_ = start.generation;
  started_ = loop_->ClockNow();
  stopping_ = killed_ = stuck_reported_ = silence_said_ = gone_reported_ = false;
  if (pulses_) Arm(kRunFor, &pulse_timer_, [this] { Pulse(); });
  for (ReservedPort& port : ports_) port.StopListening();
  const auto tasks =
      TasksOf(start.mode, static_cast<int>(start.addresses.size()), start.parameter_servers);
  absl::Status status = tasks.status();
  int started = 0;
  for (; started < setup_.ranks && status.ok(); ++started) {
    status = StartOne(start, *tasks, started);
  }
  if (!status.ok()) {
    // Of the one that could not be started: those before it run, and end by themselves.
    const int rank = start.first_rank + std::max(0, started - 1);
    obs::Error("{}", std::string(base::Message(status)));
    report_(RankEnded{
        generation_,
        RankEnd{
            .rank = rank, .code = 127, .words = std::string(base::Message(status)), .advice = {}}});
  }
  Arm(kLookEvery, &look_timer_, [this] { LookAtRanks(); });
  MaybeGone();
}

absl::Status Agent::StartOne(const StartRanks& start, const std::vector<TaskId>& tasks,
                             int local_rank) {
  const int rank = start.first_rank + local_rank;
  if (rank < 0 || rank >= static_cast<int>(tasks.size())) {
    return absl::InternalError(base::Cat("the leader gave rank ", rank, " of ", tasks.size()));
  }
  const TaskId& task = tasks[static_cast<size_t>(rank)];
  Seat seat{.rank = rank,
            .ranks = static_cast<int>(tasks.size()),
            .local_rank = local_rank,
            .local_ranks = setup_.ranks,
            .node = start.node,
            .nodes = start.nodes,
            .generation = start.generation,
            .restarts = start.restarts,
            .run_id = start.run_id,
            .task = task,
            .mode = start.mode,
            .tf_config = TfConfig(start.mode, tasks, start.addresses, rank),
            .gpus = GpusOfRank(setup_.gpus, local_rank, setup_.ranks),
            .cpus = setup_.cpus,
            .interface = setup_.interface};
  ToSpawn what{.arguments = setup_.program, .environment = {}, .beats = {}};
  what.group = setup_.group;
  if (!setup_.places.empty()) what.place = setup_.places[static_cast<size_t>(local_rank)];
  seat.pinned_cpus = static_cast<int>(what.place.cpus.size());
  base::UniqueFd beats;
  Help help = setup_.help;
  if (help.inject) {
    ASSIGN_OR_RETURN(auto pipe, MakePipe());
    beats = std::move(pipe.first);
    what.beats = std::move(pipe.second);
    help.beat_fd = what.beats.get();
  }
  what.environment = Merge(setup_.environment, RankVariables(seat, help, setup_.environment));
  const std::string folder = base::Cat(setup_.log_dir, "/", start.generation);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  ASSIGN_OR_RETURN(Spawned spawned, Spawn(what));
  spawned.beats = std::move(beats);
  const pid_t pid = spawned.pid;
  ranks_[pid] = std::make_unique<RankProcess>(
      RankProcess::Place{.rank = rank,
                         .name = TaskName(task),
                         .watched = start.mode != Mode::kParameterServer || rank == 0,
                         .alone = start.mode == Mode::kLocal,
                         .log_path = base::Cat(folder, "/", FileName(TaskName(task)))},
      std::move(spawned), loop_, console_);
  return absl::OkStatus();
}

void Agent::Do(const StopRanks& stop) {
  if (stop.generation != generation_) return;
  stopping_ = true;
  loop_->Cancel(look_timer_);
  Resume();
  if (stop.signal == SIGKILL) return KillAll();
  for (const auto& [pid, rank] : ranks_) {
    // To the process alone: its helpers must not be gone before it has saved.
    if (stop.signal != 0) kill(pid, stop.signal);
  }
  Arm(absl::Milliseconds(stop.grace_ms), &grace_timer_, [this] { KillAll(); });
  MaybeGone();
}

void Agent::KillAll() {
  killed_ = true;
  KillGroup(setup_.group);
  for (const auto& [pid, rank] : ranks_) kill(-pid, SIGKILL);
  if (ranks_.empty()) {
    // What left its group, or lost its parent.
    for (const pid_t pid : Descendants()) kill(pid, SIGKILL);
  }
  Reap();
  if (!gone_reported_) Arm(limits::kKillEvery, &kill_timer_, [this] { KillAll(); });
}

void Agent::Do(const DumpStacks&) {
  loop_->Cancel(look_timer_);
  Resume();
  for (const auto& [pid, rank] : ranks_) {
    if (rank->dumps_stacks()) {
      kill(pid, kDumpSignal);
    } else {
      obs::Warn("{} cannot show its stack: the injected help is not there", rank->name());
    }
  }
}

void Agent::MakeRoom(Share share) {
  if (!setup_.group.empty()) {
    SetGroupWeight(setup_.group, share == Share::kAll ? kGroupWeight : kGroupWeightLight);
  }
  const bool pulsed = std::exchange(pulses_, share == Share::kPulse);
  if (pulses_ && !pulsed) return Pulse();
  if (!pulses_) Resume();
}

void Agent::Pulse() {
  if (!pulses_ || stopping_) return Resume();
  paused_ = !paused_;
  for (const auto& [pid, rank] : ranks_) kill(-pid, paused_ ? SIGSTOP : SIGCONT);
  Arm(paused_ ? kPauseFor : kRunFor, &pulse_timer_, [this] { Pulse(); });
}

void Agent::Resume() {
  loop_->Cancel(pulse_timer_);
  if (!std::exchange(paused_, false)) return;
  // A stopped process takes no other signal than SIGKILL.
  for (const auto& [pid, rank] : ranks_) kill(-pid, SIGCONT);
}

void Agent::Reap() {
  while (true) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0) {
      break;
    }
    const auto at = ranks_.find(info.si_pid);
    if (at != ranks_.end() &&
        (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED)) {
      // Still a zombie, so the group's number is nobody else's: its helpers go with it.
      kill(-info.si_pid, SIGKILL);
    }
    int status = 0;
    if (waitpid(info.si_pid, &status, WNOHANG | WUNTRACED | WCONTINUED) <= 0) break;
    if (at == ranks_.end()) continue;  // One that we adopted.
    if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
      at->second->SetStopped(WIFSTOPPED(status));
      continue;
    }
    const std::unique_ptr<RankProcess> rank = std::move(at->second);
    ranks_.erase(at);
    Ended(rank.get(), status);
  }
  MaybeGone();
}

void Agent::Ended(RankProcess* rank, int status) {
  rank->Drain();
  const RankEnd end = rank->Finish(status, stopping_, killed_);
  obs::Info("{} ended: {}", rank->name(), HowItEnded(end));
  report_(RankEnded{generation_, end});
}

void Agent::MaybeGone() {
  if (gone_reported_ || !ranks_.empty()) return;
  if (!Descendants().empty()) {
    // Left by a rank outside its group: nothing of a generation may meet the next one.
    Arm(limits::kKillEvery, &kill_timer_, [this] { KillAll(); });
    return;
  }
  gone_reported_ = true;
  for (const loop::TimerId timer : {look_timer_, grace_timer_, kill_timer_}) loop_->Cancel(timer);
  report_(RanksGone{generation_});
}

void Agent::Abandon() {
  stopping_ = killed_ = true;
  gone_reported_ = true;
  for (const loop::TimerId timer : {look_timer_, grace_timer_, kill_timer_}) loop_->Cancel(timer);
  ranks_.clear();
  KillGroup(setup_.group);
  KillDescendants();
}

void Agent::LookAtRanks() {
  console_->Flush();
  const bool line_due = loop_->ClockNow() - last_shown_ >= limits::kProgressEvery;
  std::vector<RankView> views;
  std::vector<RankStatus> states;
  for (const auto& [pid, rank] : ranks_) {
    views.push_back(rank->view());
    states.push_back(rank->Status());
    rank->ShowProgress(line_due);
  }
  if (line_due) last_shown_ = loop_->ClockNow();
  // Only for whoever looks on: training goes on without it.
  ReplaceFile(base::Cat(setup_.log_dir, "/", kStatusFile), StatusJson(states)).IgnoreError();
  LookForStuck(views);
  Arm(kLookEvery, &look_timer_, [this] { LookAtRanks(); });
}

void Agent::LookForStuck(const std::vector<RankView>& views) {
  if (stopping_ || stuck_reported_) return;
  const auto stuck = FindStuck(views, setup_.watch, loop_->ClockNow());
  if (!stuck.has_value()) return;
  if (stuck->perhaps_at_work && std::exchange(silence_said_, true)) return;
  stuck_reported_ = !stuck->perhaps_at_work;
  report_(RankStuck{.generation = generation_,
                    .rank = stuck->rank,
                    .why = stuck->why,
                    .perhaps_at_work = stuck->perhaps_at_work});
}

}  // namespace tensord::train
