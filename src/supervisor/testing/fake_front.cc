// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// A front that serves nothing but orders of a test, a line each over the gRPC port; see
// tests/supervisor/. It stands in for serve::RunFront in the program that the tests start.

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "base/text.h"
#include "channel/control.h"
#include "channel/memory_file.h"
#include "channel/packet_socket.h"
#include "config/option_table.h"
#include "serve/run_front.h"

namespace tensord::serve {
namespace {

using channel::ControlKind;
using channel::ControlRecord;
using channel::PacketSocket;

std::string BytesOf(const ControlRecord& record) {
  std::string bytes(sizeof(record), '\0');
  std::memcpy(bytes.data(), &record, sizeof(record));
  return bytes;
}

class FakeFront {
 public:
  FakeFront(const config::ServerOptions& options, const supervisor::FrontSockets& sockets)
      : options_(options), sockets_(sockets), supervisor_(base::UniqueFd(sockets.supervisor_fd)) {}

  int Run();

 private:
  void ReadSupervisor();
  void ServeClient(int listener);
  // The answer to one order.
  std::string Obey(const std::string& order);
  std::string Tell(ControlKind kind, pid_t pid, uint32_t runtime);
  std::string Keep(const std::vector<int>& descriptors);
  std::string Fork(uint32_t runtime);

  const config::ServerOptions& options_;
  const supervisor::FrontSockets& sockets_;
  std::optional<PacketSocket> supervisor_;
  std::map<uint32_t, PacketSocket> zygotes_;
  std::string events_;
  bool drains_ = true;
  std::optional<int> exit_code_;
};

int FakeFront::Run() {
  if (options_.model_name.starts_with("exit ")) return std::stoi(options_.model_name.substr(5));
  for (const supervisor::LoopSockets& loop : sockets_.loops) {
    for (const int fd :
         {loop.grpc_fd, loop.rest_fd, loop.unix_fd, loop.admin_fd, loop.admin_unix_fd}) {
      if (fd >= 0) listen(fd, SOMAXCONN);
    }
  }
  Tell(ControlKind::kFrontReady, 0, 0);
  while (!exit_code_.has_value()) {
    std::vector<pollfd> fds;
    fds.push_back({supervisor_.has_value() ? supervisor_->fd() : -1, POLLIN, 0});
    for (const supervisor::LoopSockets& loop : sockets_.loops) {
      for (const int fd :
           {loop.grpc_fd, loop.rest_fd, loop.unix_fd, loop.admin_fd, loop.admin_unix_fd})
        fds.push_back({fd, POLLIN, 0});
    }
    if (poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[0].revents != 0) ReadSupervisor();
    for (size_t i = 1; i < fds.size(); ++i) {
      if (fds[i].revents != 0) ServeClient(fds[i].fd);
    }
  }
  return *exit_code_;
}

void FakeFront::ReadSupervisor() {
  auto packet = supervisor_->Receive(sizeof(ControlRecord), 1);
  if (!packet.ok()) _exit(3);
  ControlRecord record;
  std::memcpy(&record, packet->bytes.data(), sizeof(record));
  if (record.kind == ControlKind::kPing) {
    Tell(ControlKind::kPong, 0, 0);
    return;
  }
  events_ += base::Cat("kind=", static_cast<uint32_t>(record.kind), " pid=", record.pid,
                       " status=", record.wait_status, " runtime=", record.runtime, "\n");
  if (record.kind == ControlKind::kZygoteStarted) {
    zygotes_.insert_or_assign(record.runtime, PacketSocket(std::move(packet->descriptors.at(0))));
  }
  if (record.kind == ControlKind::kDrain && drains_) exit_code_ = 0;
}

void FakeFront::ServeClient(int listener) {
  const base::UniqueFd client(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!client.valid()) return;  // Another loop's socket had it.
  char text[1000];
  const ssize_t got = read(client.get(), text, sizeof(text));
  if (got <= 0) return;
  const std::string answer = Obey(std::string(text, static_cast<size_t>(got)));
  [[maybe_unused]] const ssize_t ignored = write(client.get(), answer.data(), answer.size());
}

std::string FakeFront::Tell(ControlKind kind, pid_t pid, uint32_t runtime) {
  ControlRecord record;
  record.kind = kind;
  record.pid = pid;
  record.runtime = runtime;
  return supervisor_->Send(BytesOf(record)).ToString();
}

std::string FakeFront::Keep(const std::vector<int>& descriptors) {
  ControlRecord record;
  record.kind = ControlKind::kKeep;
  return supervisor_->Send(BytesOf(record), descriptors).ToString();
}

std::string FakeFront::Fork(uint32_t runtime) {
  const auto zygote = zygotes_.find(runtime);
  if (zygote == zygotes_.end()) return "no zygote";
  ControlRecord record;
  record.kind = ControlKind::kFork;
  if (!zygote->second.Send(BytesOf(record)).ok()) return "zygote gone";
  const auto packet = zygote->second.Receive(sizeof(record), 0);
  if (!packet.ok()) return "zygote gone";
  std::memcpy(&record, packet->bytes.data(), sizeof(record));
  return base::Cat(record.pid);
}

std::string FakeFront::Obey(const std::string& order) {
  std::istringstream words(order);
  std::string verb;
  int number = 0;
  words >> verb >> number;
  if (verb == "pid") return base::Cat(getpid());
  if (verb == "events") return events_;
  if (verb == "options") {
    std::string text;
    for (const std::string& argument : config::ToArguments(options_)) text += argument + "\n";
    return text;
  }
  if (verb == "waits") return sockets_.listen_when_loaded ? "true" : "false";
  if (verb == "kept") {
    return channel::ReadSealed(sockets_.kept_fd, channel::kKeptBytesMax).value_or("nothing");
  }
  if (verb == "keep") return Keep({channel::SealBytes("kept", order.substr(5)).value().get()});
  if (verb == "keep_unsealed") {
    return Keep({channel::MakeMemoryFile("kept", 100).value().fd.get()});
  }
  if (verb == "forget") return Keep({});
  if (verb == "zygote") return Tell(ControlKind::kStartZygote, 0, static_cast<uint32_t>(number));
  if (verb == "fork") return Fork(static_cast<uint32_t>(number));
  if (verb == "kill") return Tell(ControlKind::kKillWorker, number, 0);
  if (verb == "kill_zygote") return Tell(ControlKind::kKillZygote, number, 0);
  if (verb == "nonsense") return supervisor_->Send("nonsense").ToString();
  if (verb == "hang_up") supervisor_.reset();
  if (verb == "ignore_drain") drains_ = false;
  if (verb == "exit") exit_code_ = number;
  if (verb == "crash") raise(SIGKILL);
  return "OK";
}

}  // namespace

int RunFront(const config::ServerOptions& options, const supervisor::FrontSockets& sockets) {
  return FakeFront(options, sockets).Run();
}

}  // namespace tensord::serve
