// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// A zygote without TensorFlow, under the name of the worker program: forks workers that do nothing
// until they are killed.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "channel/control.h"
#include "channel/packet_socket.h"

namespace tensord::supervisor {
namespace {

using channel::ControlKind;
using channel::ControlRecord;

[[noreturn]] void BeWorker(pid_t supervisor, int told) {
  const pid_t self = getpid();
  // Once the middle process is gone, the subreaper is the parent whose death counts.
  while (getppid() != supervisor) usleep(100);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != supervisor) _exit(0);
  [[maybe_unused]] const ssize_t ignored = write(told, &self, sizeof(self));
  while (true) pause();
}

// Forks twice; gives the worker's pid once it is the supervisor's child.
pid_t ForkWorker(pid_t supervisor) {
  int told[2];
  if (pipe(told) != 0) return -1;
  const pid_t middle = fork();
  if (middle == 0) {
    if (fork() == 0) BeWorker(supervisor, told[1]);
    _exit(0);
  }
  waitpid(middle, nullptr, 0);
  close(told[1]);
  pid_t worker = -1;
  if (read(told[0], &worker, sizeof(worker)) != sizeof(worker)) worker = -1;
  close(told[0]);
  return worker;
}

int Main() {
  const pid_t supervisor = getppid();
  const channel::PacketSocket front{base::UniqueFd(channel::kZygoteSocketFd)};
  while (true) {
    const auto packet = front.Receive(sizeof(ControlRecord), 5);
    if (!packet.ok()) return 0;
    ControlRecord record;
    std::memcpy(&record, packet->bytes.data(), sizeof(record));
    record.kind = ControlKind::kForked;
    record.pid = ForkWorker(supervisor);
    std::string bytes(sizeof(record), '\0');
    std::memcpy(bytes.data(), &record, sizeof(record));
    if (!front.Send(bytes).ok()) return 0;
  }
}

}  // namespace
}  // namespace tensord::supervisor

int main() { return tensord::supervisor::Main(); }
