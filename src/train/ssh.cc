// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/ssh.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "base/text.h"
#include "loop/event_loop.h"
#include "obs/log.h"
#include "train/limits.h"
#include "train/output.h"
#include "train/processes.h"

namespace tensord::train {
namespace {

// One ssh that runs: what it says goes to our own output, or is kept.
class Remote {
 public:
  Remote(std::string host, Spawned spawned, loop::EventLoop* loop, Console* console)
      : host_(std::move(host)),
        pid_(spawned.pid),
        console_(console),
        in_(std::move(spawned.in)),
        streams_{{.as = 1, .pipe = std::move(spawned.out), .cutter = {}, .watch = {}},
                 {.as = 2, .pipe = std::move(spawned.err), .cutter = {}, .watch = {}}} {
    for (Stream& stream : streams_) {
      Stream* const at = &stream;
      at->watch = loop->Add(at->pipe.get(), EPOLLIN, [this, at](uint32_t) { Read(at); });
    }
  }

  const std::string& host() const { return host_; }
  pid_t pid() const { return pid_; }
  const std::string& kept() const { return kept_; }
  std::optional<int> status() const { return status_; }

  void Say(const std::string& line) {
    const std::string text = base::Cat(line, "\n");
    // A few bytes into an empty pipe: it takes them all.
    [[maybe_unused]] const ssize_t wrote = write(in_.get(), text.data(), text.size());
  }
  // Its standard input ends: an agent stops then.
  void HangUp() { in_.Reset(); }
  void Ended(int status) {
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    for (Stream& stream : streams_) {
      while (stream.watch.active() && Read(&stream)) {
      }
      if (const std::string rest = stream.cutter.Rest(); !rest.empty()) Take(stream.as, rest);
      stream.watch.Reset();
    }
  }

 private:
  struct Stream {
    int as;
    base::UniqueFd pipe;
    LineCutter cutter;
    loop::EventLoop::Watch watch;
  };
  // False when there is no more now.
  bool Read(Stream* stream) {
    char bytes[4096];
    const ssize_t got = read(stream->pipe.get(), bytes, sizeof(bytes));
    if (got == 0) stream->watch.Reset();
    if (got <= 0) return false;
    for (const std::string& line : stream->cutter.Feed({bytes, static_cast<size_t>(got)})) {
      Take(stream->as, line);
    }
    return true;
  }
  void Take(int as, const std::string& line) {
    // Ranks' lines have their names already; those of agents and of ssh get the host's.
    if (console_ != nullptr && line.starts_with("[")) return console_->Text(as, line + "\n");
    if (console_ != nullptr) return console_->Line(as, host_, line);
    if (kept_.size() < limits::kTracebackBytesMax) kept_ += line + "\n";
  }

  const std::string host_;
  const pid_t pid_;
  Console* const console_;
  base::UniqueFd in_;
  Stream streams_[2];
  std::string kept_;
  std::optional<int> status_;
};

// Runs one ssh a machine, at once, until all have ended.
class Group {
 public:
  // `console`: where what they say goes; null: it is kept.
  explicit Group(Console* console) : console_(console) {}

  // Those that run longer than `longest` are killed. Once.
  absl::Status Run(const SshSetup& setup, const std::vector<std::vector<std::string>>& commands,
                   const std::string& first_line, absl::Duration longest);
  const std::vector<std::unique_ptr<Remote>>& remotes() const { return remotes_; }
  int signal() const { return signal_; }

 private:
  absl::Status HearSignals();
  void OnSignals();
  void Reap();
  void HangUp();
  void KillAll();

  Console* const console_;
  std::unique_ptr<loop::EventLoop> loop_;
  base::UniqueFd signals_;
  loop::EventLoop::Watch watch_;
  std::vector<std::unique_ptr<Remote>> remotes_;
  int signal_ = 0;
};

absl::Status Group::HearSignals() {
  ASSIGN_OR_RETURN(signals_, TakeSignals());
  watch_ = loop_->Add(signals_.get(), EPOLLIN, [this](uint32_t) { OnSignals(); });
  return absl::OkStatus();
}

absl::Status Group::Run(const SshSetup& setup,
                        const std::vector<std::vector<std::string>>& commands,
                        const std::string& first_line, absl::Duration longest) {
  ASSIGN_OR_RETURN(loop_, loop::EventLoop::Create());
  RETURN_IF_ERROR(HearSignals());
  for (size_t i = 0; i < commands.size(); ++i) {
    ToSpawn what{
        .arguments = commands[i], .environment = setup.own_environment, .beats = {}, .input = true};
    ASSIGN_OR_RETURN(Spawned spawned, Spawn(what));
    remotes_.push_back(
        std::make_unique<Remote>(setup.hosts[i], std::move(spawned), loop_.get(), console_));
    if (!first_line.empty()) remotes_.back()->Say(first_line);
  }
  if (longest < absl::InfiniteDuration()) {
    loop_->At(loop_->ClockNow() + longest, [this] { KillAll(); });
  }
  loop_->Run();
  return absl::OkStatus();
}

void Group::KillAll() {
  for (const auto& remote : remotes_) {
    if (!remote->status().has_value()) kill(-remote->pid(), SIGKILL);
  }
}

void Group::OnSignals() {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) {
      Reap();
      continue;
    }
    if (signal_ == 0) obs::Info("told to stop; all machines are told to");
    const bool again = std::exchange(signal_, signal) != 0;
    HangUp();
    if (again || signal == SIGUSR2) loop_->Stop();
  }
}

void Group::HangUp() {
  for (const auto& remote : remotes_) remote->HangUp();
}

void Group::Reap() {
  int status = 0;
  for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
    for (const auto& remote : remotes_) {
      if (remote->pid() != pid) continue;
      remote->Ended(status);
      // ssh's own failure: the others would wait for that machine until their patience ends.
      if (console_ != nullptr && remote->status() == 255) {
        obs::Error("{}: the connection is lost or was never made; all machines are told to stop",
                   remote->host());
        HangUp();
      }
    }
  }
  if (console_ != nullptr) console_->Flush();
  for (const auto& remote : remotes_) {
    if (!remote->status().has_value()) return;
  }
  loop_->Stop();
}

// What stands behind "says", in one line.
std::string OneLine(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& c : text) c = c == '\n' ? ';' : c;
  return text;
}

// Each machine must say the version that we are.
bool AllFit(const Group& group, const std::string& version) {
  bool fit = true;
  for (const auto& remote : group.remotes()) {
    const std::string said = OneLine(remote->kept());
    if (remote->status() == 0 && said == version) continue;
    fit = false;
    if (remote->status() == 255) {
      obs::Error("{}: ssh does not get there without being asked anything: {}", remote->host(),
                 said);
    } else if (remote->status() == 0) {
      obs::Error("{}: another tensord: \"{}\", here \"{}\": install the same", remote->host(), said,
                 version);
    } else {
      obs::Error("{}: this folder and tensord must be at the same place there: {}", remote->host(),
                 said.empty() ? "no answer" : said);
    }
  }
  return fit;
}

}  // namespace

int RunOverSsh(const SshSetup& setup, const std::string& version) {
  std::vector<std::vector<std::string>> checks, agents;
  for (int i = 0; i < static_cast<int>(setup.hosts.size()); ++i) {
    checks.push_back(CheckCommand(setup, i));
    agents.push_back(AgentCommand(setup, i));
  }
  absl::Status status;
  {
    Group looks(nullptr);
    status = looks.Run(setup, checks, "", limits::kSshWait);
    if (looks.signal() != 0) return 128 + looks.signal();
    if (status.ok() && !AllFit(looks, version)) return 1;
  }
  Console console;
  Group group(&console);
  if (status.ok()) {
    obs::Info("{} machines answer; {} leads", setup.hosts.size(), setup.hosts.front());
    status = group.Run(setup, agents, setup.token, absl::InfiniteDuration());
  }
  if (!status.ok()) {
    obs::Error("{}", std::string(base::Message(status)));
    return 1;
  }
  console.Flush(true);
  return group.remotes().front()->status().value_or(128 + group.signal());
}

}  // namespace tensord::train
