// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "doctor/top/fetch.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <memory>

#include "base/text.h"
#include "base/unique_fd.h"

namespace tensord::doctor {
namespace {

constexpr size_t kPageBytesMax = 64 << 20;  // A page of thousands of models has some 10 MB.

base::UniqueFd Connect(const std::string& host, const std::string& port, timeval timeout) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found, freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    base::UniqueFd fd(socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol));
    if (!fd.valid()) continue;
    setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));  // Of connect, too.
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    if (connect(fd.get(), at->ai_addr, at->ai_addrlen) == 0) return fd;
  }
  return {};
}

// The whole answer; empty when it breaks off or takes too long between two pieces.
std::string Answer(int fd) {
  std::string bytes;
  char part[16384];
  for (;;) {
    const ssize_t got = recv(fd, part, sizeof(part), 0);
    if (got == 0) return bytes;
    if (got < 0 || bytes.size() > kPageBytesMax) return "";
    bytes.append(part, static_cast<size_t>(got));
  }
}

}  // namespace

absl::StatusOr<std::string> Fetch(const std::string& server, const std::string& path,
                                  absl::Duration timeout) {
  const size_t colon = server.rfind(':');
  const base::UniqueFd fd =
      Connect(server.substr(0, colon), server.substr(colon + 1), absl::ToTimeval(timeout));
  if (!fd.valid()) return absl::UnavailableError(base::Cat("nobody answers at ", server));
  // Version 1.0: the body comes in one piece and ends with the connection.
  const std::string request = base::Cat("GET ", path, " HTTP/1.0\r\nHost: ", server, "\r\n\r\n");
  std::string bytes;
  if (send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) ==
      static_cast<ssize_t>(request.size())) {
    bytes = Answer(fd.get());
  }
  const size_t body = bytes.find("\r\n\r\n");
  if (body == std::string::npos) {
    return absl::UnavailableError(base::Cat(server, " did not answer in time"));
  }
  if (bytes.find(" 200 ") > bytes.find("\r\n")) {
    return absl::FailedPreconditionError(
        base::Cat("http://", server, path, " answers \"", bytes.substr(0, bytes.find("\r\n")),
                  "\": give the server a --monitoring_config_file that enables the page"));
  }
  return bytes.substr(body + 4);
}

}  // namespace tensord::doctor
