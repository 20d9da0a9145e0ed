// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "supervisor/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "base/status_macros.h"
#include "base/text.h"

namespace tensord::supervisor {
namespace {

// An address of any family, as the socket calls want it.
struct Address {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  int family() const { return storage.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Address InetAddress(const std::string& text, int port) {
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<uint16_t>(port));
    address.bytes = sizeof(*v6);
  } else {
    v4->sin_family = AF_INET;
    inet_pton(AF_INET, text.c_str(), &v4->sin_addr);
    v4->sin_port = htons(static_cast<uint16_t>(port));
    address.bytes = sizeof(*v4);
  }
  return address;
}

Address UnixAddress(const std::string& path) {
  Address address;
  auto* name = reinterpret_cast<sockaddr_un*>(&address.storage);
  name->sun_family = AF_UNIX;
  std::memcpy(name->sun_path, path.c_str(), path.size() + 1);
  address.bytes = sizeof(*name);
  return address;
}

// What one listener is called in errors and in the log.
struct Name {
  std::string protocol;  // "gRPC"
  std::string option;    // "--port"
  std::string place;     // "0.0.0.0:8500"
  int port = 0;
};

absl::Status BindError(const Name& name, int error) {
  const std::string where = base::Cat(name.protocol, " cannot listen on ", name.place, ": ");
  switch (error) {
    case EADDRINUSE:
      return absl::FailedPreconditionError(
          base::Cat(where, "port ", name.port,
                    " is in use by another program; stop that one (`ss "
                    "-ltnp` names it) or choose another port with ",
                    name.option));
    case EACCES:
    case EPERM:
      return absl::FailedPreconditionError(
          base::Cat(where, "ports below 1024 need CAP_NET_BIND_SERVICE; choose another port with ",
                    name.option));
    case EADDRNOTAVAIL:
      return absl::FailedPreconditionError(
          base::Cat(where, "this machine has no such address; see --bind_address"));
    default:
      return absl::FailedPreconditionError(base::Cat(where, std::strerror(error)));
  }
}

absl::StatusOr<base::UniqueFd> Socket(const Name& name, int family) {
  base::UniqueFd low(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!low.valid()) return BindError(name, errno);
  base::UniqueFd fd(fcntl(low.get(), F_DUPFD_CLOEXEC, kLowestDescriptor));
  if (!fd.valid()) return BindError(name, errno);
  return fd;
}

void SetOption(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof(value));
}

// A bound TCP socket. Shared ones may be many, a loop each, all of one user. An unshared one fails
// when anyone, another tensord of the same user included, has the port.
absl::StatusOr<base::UniqueFd> Bind(const Name& name, const Address& address, bool shared) {
  ASSIGN_OR_RETURN(base::UniqueFd fd, Socket(name, address.family()));
  SetOption(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (shared) SetOption(fd.get(), SOL_SOCKET, SO_REUSEPORT, 1);
  if (address.family() == AF_INET6) SetOption(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(fd.get(), address.get(), address.bytes) != 0) return BindError(name, errno);
  return fd;
}

bool HaveIpv6() {
  const base::UniqueFd fd(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Address any = InetAddress("::", 0);
  return fd.valid() && bind(fd.get(), any.get(), any.bytes) == 0;
}

std::string BindAddress(const ListenOptions& options, bool rest) {
  if (!options.bind_address.empty()) return options.bind_address;
  return rest && HaveIpv6() ? "::" : "0.0.0.0";
}

absl::Status CheckStaleSocket(const std::string& path, std::string_view option) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return absl::OkStatus();
  const base::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const Address address = UnixAddress(path);
  if (connect(fd.get(), address.get(), address.bytes) != 0 && errno == ECONNREFUSED) {
    unlink(path.c_str());  // Left by a server that was killed.
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(base::Cat(
      option, "=", path, " is in use by another program; stop that one or name another path"));
}

// The folder that the file of a path lies in, as access() wants it: what is no folder is an error.
std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : base::Cat(path.substr(0, slash), "/.");
}

}  // namespace

absl::Status CheckUnixPath(const std::string& path, std::string_view option) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return absl::FailedPreconditionError(base::Cat(option, "=", path, " is longer than the ",
                                                   sizeof(sockaddr_un::sun_path) - 1,
                                                   " bytes that a socket's path may have"));
  }
  struct stat found {};
  if (lstat(path.c_str(), &found) == 0 && !S_ISSOCK(found.st_mode)) {
    return absl::FailedPreconditionError(
        base::Cat(option, "=", path, " exists and is no socket; remove it or name another"));
  }
  if (access(FolderOf(path).c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      base::Cat(option, "=", path, ": its folder: ", std::strerror(errno),
                "; name a path in a folder where this user may make files"));
}

absl::Status Listeners::OpenTcp(const ListenOptions& options, base::UniqueFd Loop::*member) {
  const bool rest = member == &Loop::rest;
  const int port = rest ? options.rest_port : options.grpc_port;
  const bool shared = options.grpc_port == options.rest_port;
  if (port == 0 || (rest && shared)) return absl::OkStatus();
  const std::string host = BindAddress(options, rest);
  const bool v6 = host.find(':') != std::string::npos;
  const Name name{.protocol = rest     ? "REST"
                              : shared ? "gRPC and REST"
                                       : "gRPC",
                  .option = rest ? "--rest_api_port" : "--port",
                  .place = base::Cat(v6 ? "[" : "", host, v6 ? "]:" : ":", port),
                  .port = port};
  const Address address = InetAddress(host, port);
  // Shared sockets bind beside those of another server of the same user; ask for the port alone.
  RETURN_IF_ERROR(Bind(name, address, false).status());
  for (Loop& loop : loops_) {
    ASSIGN_OR_RETURN(loop.*member, Bind(name, address, true));
    if (options.listen && ::listen((loop.*member).get(), SOMAXCONN) != 0) {
      return BindError(name, errno);
    }
  }
  descriptions_.push_back(base::Cat(name.protocol, " on ", name.place));
  return absl::OkStatus();
}

absl::Status Listeners::OpenAdmin(const ListenOptions& options) {
  if (options.admin_port == 0) return absl::OkStatus();
  const std::string& host = options.admin_address;
  const bool v6 = host.find(':') != std::string::npos;
  const Name name{.protocol = "admin calls",
                  .option = "--admin_port",
                  .place = base::Cat(v6 ? "[" : "", host, v6 ? "]:" : ":", options.admin_port),
                  .port = options.admin_port};
  base::UniqueFd& fd = loops_.front().admin;
  ASSIGN_OR_RETURN(fd, Bind(name, InetAddress(host, options.admin_port), false));
  if (options.listen && ::listen(fd.get(), SOMAXCONN) != 0) return BindError(name, errno);
  descriptions_.push_back(base::Cat(name.protocol, " on ", name.place));
  return absl::OkStatus();
}

absl::Status Listeners::OpenUnix(const std::string& path, std::string_view protocol,
                                 std::string_view option, base::UniqueFd Loop::*member) {
  if (path.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckUnixPath(path, option));
  RETURN_IF_ERROR(CheckStaleSocket(path, option));
  const Name name{.protocol = std::string(protocol), .option = std::string(option), .place = path};
  base::UniqueFd& fd = loops_.front().*member;
  ASSIGN_OR_RETURN(fd, Socket(name, AF_UNIX));
  const Address address = UnixAddress(path);
  // Its mode comes from the umask, as the original's: by default only the same user can connect.
  if (bind(fd.get(), address.get(), address.bytes) != 0 ||
      (listen_ && ::listen(fd.get(), SOMAXCONN) != 0)) {
    return absl::FailedPreconditionError(base::Cat(option, "=", path, ": ", std::strerror(errno)));
  }
  struct stat made {};
  if (lstat(path.c_str(), &made) == 0) {
    socket_files_.push_back(std::make_unique<SocketFile>());
    socket_files_.back()->path = path;
    socket_files_.back()->device = made.st_dev;
    socket_files_.back()->inode = made.st_ino;
  }
  descriptions_.push_back(base::Cat(protocol, " on UNIX socket ", path));
  return absl::OkStatus();
}

absl::StatusOr<Listeners> Listeners::Open(const ListenOptions& options) {
  Listeners listeners;
  listeners.listen_ = options.listen;
  listeners.loops_.resize(static_cast<size_t>(options.loops));
  RETURN_IF_ERROR(listeners.OpenTcp(options, &Loop::grpc));
  RETURN_IF_ERROR(listeners.OpenTcp(options, &Loop::rest));
  RETURN_IF_ERROR(listeners.OpenUnix(options.unix_path, "gRPC", "--grpc_socket_path", &Loop::unix));
  RETURN_IF_ERROR(listeners.OpenAdmin(options));
  RETURN_IF_ERROR(listeners.OpenUnix(options.admin_unix_path, "admin calls", "--admin_socket_path",
                                     &Loop::admin_unix));
  return listeners;
}

Listeners::SocketFile::~SocketFile() {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return;
  if (found.st_dev == device && found.st_ino == inode) unlink(path.c_str());
}

FrontSockets Listeners::ForFront() const {
  FrontSockets sockets{.loops = {}, .listen_when_loaded = !listen_};
  for (const Loop& loop : loops_) {
    sockets.loops.push_back({loop.grpc.get(), loop.rest.get(), loop.unix.get(), loop.admin.get(),
                             loop.admin_unix.get()});
  }
  return sockets;
}

std::vector<int> Listeners::Descriptors() const {
  std::vector<int> descriptors;
  for (const Loop& loop : loops_) {
    for (const base::UniqueFd* fd :
         {&loop.grpc, &loop.rest, &loop.unix, &loop.admin, &loop.admin_unix}) {
      if (fd->valid()) descriptors.push_back(fd->get());
    }
  }
  return descriptors;
}

}  // namespace tensord::supervisor
