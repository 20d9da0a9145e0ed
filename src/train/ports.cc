// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/ports.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "train/address.h"
#include "train/limits.h"

namespace tensord::train {
namespace {

constexpr int kReservedBacklog = 128;  // Connects that wait; nobody accepts them.

absl::Status KernelError(const char* call) {
  return absl::UnavailableError(
      base::Cat("cannot reserve a port: ", call, ": ", std::strerror(errno)));
}

absl::StatusOr<base::UniqueFd> Bind(int port) {
  base::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return KernelError("socket");
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(static_cast<uint16_t>(port));
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&any), sizeof(any)) != 0) {
    return KernelError("bind");
  }
  return fd;
}

// One connect of the matrix.
struct Attempt {
  const std::string* address;
  base::UniqueFd socket;
  std::string error;
};

Attempt Begin(const std::string& address) {
  Attempt attempt{.address = &address, .socket = {}, .error = {}};
  auto connected = StartConnect(address);
  if (connected.ok()) {
    attempt.socket = *std::move(connected);
  } else {
    attempt.error = base::Message(connected.status());
  }
  return attempt;
}

std::string ErrorOf(const base::UniqueFd& socket) {
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? "" : std::strerror(error);
}

}  // namespace

absl::StatusOr<ReservedPort> ReservedPort::Take() {
  int number = 0;
  {
    ASSIGN_OR_RETURN(const base::UniqueFd chosen, Bind(0));
    sockaddr_in name{};
    socklen_t size = sizeof(name);
    getsockname(chosen.get(), reinterpret_cast<sockaddr*>(&name), &size);
    number = ntohs(name.sin_port);
  }
  // By number, so that the kernel keeps it when the socket stops listening.
  ASSIGN_OR_RETURN(base::UniqueFd kept, Bind(number));
  return ReservedPort(std::move(kept), number);
}

absl::Status ReservedPort::Listen() {
  return listen(socket_.get(), kReservedBacklog) == 0 ? absl::OkStatus() : KernelError("listen");
}

void ReservedPort::StopListening() { shutdown(socket_.get(), SHUT_RDWR); }

std::vector<std::string> Unreachable(const std::vector<std::string>& addresses) {
  std::vector<Attempt> attempts;
  attempts.reserve(addresses.size());
  for (const std::string& address : addresses) attempts.push_back(Begin(address));
  const absl::Time deadline = base::MonotonicClock().Now() + limits::kProbeWait;
  std::vector<std::string> failed;
  for (Attempt& attempt : attempts) {
    if (attempt.socket.valid()) {
      pollfd ready{.fd = attempt.socket.get(), .events = POLLOUT, .revents = 0};
      const int64_t left = absl::ToInt64Milliseconds(deadline - base::MonotonicClock().Now());
      const int got = poll(&ready, 1, static_cast<int>(std::max<int64_t>(left, 0)));
      attempt.error = got > 0 ? ErrorOf(attempt.socket) : "no answer";
    }
    if (!attempt.error.empty()) failed.push_back(base::Cat(*attempt.address, ": ", attempt.error));
  }
  return failed;
}

}  // namespace tensord::train
