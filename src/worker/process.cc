// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "base/status_macros.h"
#include "base/text.h"
#include "channel/packet_socket.h"
#include "channel/segment.h"
#include "worker/last_words.h"
#include "worker/loop.h"
#include "worker/sandbox.h"

namespace tensord::worker {
namespace {

constexpr int kChannelFd = 3;  // With stdio, all that stays open for the process's life.
constexpr int kAdoptedFd = 4;  // Until the sandbox is entered.

// Maps the segments, moves the descriptors to their places and closes all others, among them the
// zygote's socket.
absl::StatusOr<Loop::Ends> TakeEnds(ProcessParts* parts) {
  using channel::MappedSegment;
  ASSIGN_OR_RETURN(MappedSegment request,
                   MappedSegment::Map(parts->request.get(), MappedSegment::Access::kRead));
  ASSIGN_OR_RETURN(MappedSegment response,
                   MappedSegment::Map(parts->response.get(), MappedSegment::Access::kReadWrite));
  parts->request.Reset();
  parts->response.Reset();
  if (dup2(parts->out.get(), STDOUT_FILENO) < 0 || dup2(parts->err.get(), STDERR_FILENO) < 0 ||
      dup2(parts->channel.get(), kChannelFd) < 0) {
    return absl::InternalError(base::Cat("dup2: error ", errno));
  }
  // The descriptor of `adopted` may be any number, also the one it must get.
  if (parts->adopted.get() != kAdoptedFd && dup2(parts->adopted.Release(), kAdoptedFd) < 0) {
    return absl::InternalError(base::Cat("dup2: error ", errno));
  }
  for (base::UniqueFd* moved : {&parts->channel, &parts->out, &parts->err, &parts->adopted}) {
    moved->Release();  // Closed below.
  }
  parts->channel = base::UniqueFd(kChannelFd);
  parts->adopted = base::UniqueFd(kAdoptedFd);
  if (syscall(SYS_close_range, kAdoptedFd + 1, ~0u, 0) != 0) {
    for (int fd = kAdoptedFd + 1; fd < static_cast<int>(sysconf(_SC_OPEN_MAX)); ++fd) close(fd);
  }
  return Loop::Ends{.channel = channel::PacketSocket(std::move(parts->channel)),
                    .request = std::move(request),
                    .response = std::move(response),
                    .incarnation = parts->incarnation};
}

// When the machine runs out of memory, a worker goes: it is started again, and the others serve on.
// Best effort: without /proc nothing is lost but this.
void OfferForMemory() {
  const base::UniqueFd file(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  constexpr std::string_view kRatherThanOthers = "500";
  if (file.valid()) (void)!write(file.get(), kRatherThanOthers.data(), kRatherThanOthers.size());
}

}  // namespace

void RunWorkerProcess(const Equipment& equipment, ProcessParts parts) {
  absl::StatusOr<Loop::Ends> ends = TakeEnds(&parts);
  if (!ends.ok()) {
    std::fprintf(stderr, "tensord-worker: %s\n", std::string(base::Message(ends.status())).c_str());
    _exit(static_cast<int>(ExitCode::kProtocolBroken));
  }
  OfferForMemory();
  // What a model prints to stdout must not stay in a buffer that _exit drops.
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  SpeakLastWords(kChannelFd, parts.incarnation);
  const std::unique_ptr<engine::Engine> engine = equipment.make_engine();
  Sandbox sandbox({.runtime_directory = equipment.directory,
                   .supervisor = parts.supervisor,
                   .adopted = std::move(parts.adopted),
                   .channel_fd = kChannelFd});
  Loop loop(*std::move(ends), engine.get(), &sandbox);
  // Never by exit(): the runtime's threads would meet its destroyed globals.
  _exit(static_cast<int>(loop.Serve()));
}

}  // namespace tensord::worker
