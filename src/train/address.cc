// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <memory>

#include "base/status_macros.h"
#include "base/text.h"

namespace tensord::train {

absl::StatusOr<std::pair<std::string, int>> SplitAddress(std::string_view address) {
  const size_t colon = address.rfind(':');
  std::string_view host = address.substr(0, std::min(colon, address.size()));
  int port = 0;
  if (colon != std::string_view::npos) {
    const std::string_view digits = address.substr(colon + 1);
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (end.ec != std::errc() || end.ptr != digits.data() + digits.size()) port = 0;
  }
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  const bool bracketed = address.starts_with('[');
  if (!bracketed && host.find(':') != std::string_view::npos) {
    return absl::InvalidArgumentError(base::Cat(
        "\"", address, "\" is no address: IPv6 is written in brackets, as in [fd00::1]:29400"));
  }
  if (host.empty() || port < 1 || port > 65535) {
    return absl::InvalidArgumentError(
        base::Cat("\"", address, "\" is no address: host:port is expected, as in node0:29400"));
  }
  return std::pair(std::string(host), port);
}

absl::StatusOr<base::UniqueFd> StartConnect(const std::string& address) {
  std::pair<std::string, int> parts;
  ASSIGN_OR_RETURN(parts, SplitAddress(address));
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code =
      getaddrinfo(parts.first.c_str(), base::Cat(parts.second).c_str(), &wanted, &found);
  if (code != 0) {
    return absl::NotFoundError(base::Cat(parts.first, ": ", gai_strerror(code)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  base::UniqueFd fd(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return absl::UnavailableError(base::Cat("socket: ", std::strerror(errno)));
  if (connect(fd.get(), found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS) {
    return absl::UnavailableError(std::strerror(errno));
  }
  return fd;
}

namespace {

std::string HostText(const sockaddr* address, socklen_t size) {
  char host[NI_MAXHOST];
  if (getnameinfo(address, size, host, sizeof(host), nullptr, 0, NI_NUMERICHOST) != 0) return "";
  // An IPv4 peer of a socket that takes both families.
  const std::string_view text = host;
  constexpr std::string_view kMapped = "::ffff:";
  return std::string(text.starts_with(kMapped) ? text.substr(kMapped.size()) : text);
}

}  // namespace

std::string LocalHost(int socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof(name);
  const auto address = reinterpret_cast<sockaddr*>(&name);
  return getsockname(socket, address, &size) == 0 ? HostText(address, size) : "";
}

std::string InterfaceTo(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), "9", &wanted, &found) != 0) return "";
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  // Sends nothing: the kernel chooses the way, and with it our address.
  const base::UniqueFd probe(socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (connect(probe.get(), found->ai_addr, found->ai_addrlen) != 0) return "";
  const std::string own = LocalHost(probe.get());
  ifaddrs* all = nullptr;
  if (own.empty() || getifaddrs(&all) != 0) return "";
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(all, freeifaddrs);
  for (const ifaddrs* at = all; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_LOOPBACK) != 0) continue;
    const int family = at->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (HostText(at->ifa_addr, size) == own) return at->ifa_name;
  }
  return "";
}

bool IsOurAddress(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &wanted, &found) != 0) return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  // Only addresses of our own can be bound.
  const base::UniqueFd probe(socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return bind(probe.get(), found->ai_addr, found->ai_addrlen) == 0;
}

std::string FullHostName() {
  std::string name = HostName();
  addrinfo wanted{};
  wanted.ai_flags = AI_CANONNAME;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &wanted, &found) != 0) return name;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  const std::string_view full = found->ai_canonname == nullptr ? "" : found->ai_canonname;
  // Another name altogether, such as localhost, is none that the others know us by.
  return full.starts_with(base::Cat(name, ".")) ? std::string(full) : name;
}

std::string HostName() {
  char name[256] = "localhost";
  gethostname(name, sizeof(name) - 1);
  return name;
}

}  // namespace tensord::train
