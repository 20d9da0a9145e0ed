// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/zygote.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/unique_fd.h"
#include "channel/control.h"
#include "worker/process.h"

namespace tensord::worker {
namespace {

constexpr size_t kForkDescriptors = 5;  // Channel, request, response, stdout, stderr.

struct Pipe {
  base::UniqueFd read_end;
  base::UniqueFd write_end;
};

std::optional<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  return Pipe{base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
}

// What a fork gave: a pid, or an errno.
struct Forked {
  pid_t pid = 0;
  int error = 0;
};

// The process between zygote and worker: forks the worker, says its pid (negative: an errno) and
// ends, whereby the worker passes to the supervisor.
[[noreturn]] void RunMiddle(const Equipment& equipment, ProcessParts parts, Pipe told,
                            Pipe adopted) {
  const pid_t worker = fork();
  if (worker == 0) {
    told = {};
    adopted.write_end.Reset();
    parts.adopted = std::move(adopted.read_end);
    RunWorkerProcess(equipment, std::move(parts));
  }
  const pid_t result = worker > 0 ? worker : -errno;
  [[maybe_unused]] const ssize_t ignored = write(told.write_end.get(), &result, sizeof(result));
  _exit(0);
}

Forked ForkWorker(const Equipment& equipment, ProcessParts parts) {
  // A child of a process with threads would find their locks held for ever.
  if (CountThreads() != 1) return {.pid = 0, .error = EDEADLK};
  std::optional<Pipe> told = MakePipe();
  std::optional<Pipe> adopted = MakePipe();
  if (!told.has_value() || !adopted.has_value()) return {.pid = 0, .error = errno};
  const pid_t middle = fork();
  if (middle < 0) return {.pid = 0, .error = errno};
  if (middle == 0) RunMiddle(equipment, std::move(parts), *std::move(told), *std::move(adopted));
  told->write_end.Reset();
  pid_t result = 0;
  const bool said = read(told->read_end.get(), &result, sizeof(result)) == sizeof(result);
  while (waitpid(middle, nullptr, 0) < 0 && errno == EINTR) continue;
  // From here on the supervisor is the worker's parent; closing `adopted` tells the worker.
  if (!said) return {.pid = 0, .error = EIO};
  return result > 0 ? Forked{.pid = result, .error = 0} : Forked{.pid = 0, .error = -result};
}

Forked HandleFork(const Equipment& equipment, pid_t supervisor, const channel::ControlRecord& asked,
                  std::vector<base::UniqueFd> descriptors) {
  if (descriptors.size() != kForkDescriptors) return {.pid = 0, .error = EBADF};
  return ForkWorker(equipment, {.incarnation = asked.incarnation,
                                .supervisor = supervisor,
                                .channel = std::move(descriptors[0]),
                                .request = std::move(descriptors[1]),
                                .response = std::move(descriptors[2]),
                                .out = std::move(descriptors[3]),
                                .err = std::move(descriptors[4]),
                                .adopted = {}});
}

}  // namespace

int CountThreads() {
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return -1;
  int count = 0;
  while (const dirent* entry = readdir(tasks)) count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(tasks);
  return count;
}

int ServeForks(const channel::PacketSocket& front, const std::function<Equipment()>& equipment,
               pid_t supervisor) {
  while (true) {
    absl::StatusOr<channel::Packet> packet =
        front.Receive(sizeof(channel::ControlRecord), kForkDescriptors);
    if (absl::IsUnavailable(packet.status())) return 0;
    channel::ControlRecord asked;
    if (packet.ok() && packet->bytes.size() == sizeof(asked)) {
      std::memcpy(&asked, packet->bytes.data(), sizeof(asked));
    }
    if (asked.magic != channel::kControlMagic || asked.kind != channel::ControlKind::kFork) {
      std::fprintf(stderr, "tensord-worker: the front sent a record that is no fork request\n");
      return 2;
    }
    const Forked forked =
        HandleFork(equipment(), supervisor, asked, std::move(packet->descriptors));
    channel::ControlRecord answer;
    answer.kind =
        forked.pid > 0 ? channel::ControlKind::kForked : channel::ControlKind::kForkFailed;
    answer.request = asked.request;
    answer.incarnation = asked.incarnation;
    answer.pid = forked.pid;
    answer.error = forked.error;
    std::string bytes(sizeof(answer), '\0');
    std::memcpy(bytes.data(), &answer, sizeof(answer));
    if (!front.Send(bytes).ok()) return 0;
  }
}

}  // namespace tensord::worker
