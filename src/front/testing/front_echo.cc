// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// A server of nothing but connections, for tests/raw: answers EchoService over HTTP/1.1, HTTP/2 and
// gRPC on one port. Prints "port N" when it listens. SIGTERM drains it; it then exits with 0.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "base/check.h"
#include "base/text.h"
#include "front/listener.h"
#include "front/testing/echo_service.h"

namespace tensord::front {
namespace {

struct Options {
  uint16_t port = 0;
  std::string socket_path;
  uint64_t budget_bytes = uint64_t{4} << 30;
  rlim_t open_files = 0;
  int drain_ms = 10'000;
  ListenerOptions listener;
};

base::UniqueFd ListenOnPort(uint16_t port) {
  base::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  TENSORD_CHECK(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  TENSORD_CHECK(listen(fd.get(), SOMAXCONN) == 0);
  socklen_t size = sizeof(address);
  TENSORD_CHECK(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  std::printf("port %d\n", ntohs(address.sin_port));
  return fd;
}

base::UniqueFd ListenOnPath(const std::string& path) {
  base::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  TENSORD_CHECK(path.size() < sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.data(), path.size());
  TENSORD_CHECK(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  TENSORD_CHECK(listen(fd.get(), SOMAXCONN) == 0);
  std::printf("path %s\n", path.c_str());
  return fd;
}

// Of this program: getrusage's figure begins with that of the process that started it. 0 when no
// descriptor is left to read it by.
int64_t PeakKilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::atoll(line.c_str() + 6);
  }
  return 0;
}

std::string Usage(const Listener& listener, const base::ByteBudget& budget) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto micros = [](const timeval& time) { return time.tv_sec * 1'000'000 + time.tv_usec; };
  return base::Cat(
      ",\"connections\":", listener.connections(), ",\"calls\":", listener.open_calls(),
      ",\"accepted\":", listener.counts().accepted, ",\"turned_away\":", listener.counts().refused,
      ",\"evicted\":", listener.counts().evicted, ",\"budget_used\":", budget.used(),
      ",\"cpu_us\":", micros(usage.ru_utime) + micros(usage.ru_stime),
      ",\"max_rss_kb\":", PeakKilobytes());
}

int Serve(const Options& options) {
  if (options.open_files > 0) {
    const rlimit limit{.rlim_cur = options.open_files, .rlim_max = options.open_files};
    TENSORD_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  }
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const base::UniqueFd signal_fd(signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));

  const auto loop = *loop::EventLoop::Create();
  base::ByteBudget budget(options.budget_bytes);
  EchoService service;
  base::UniqueFd fd =
      options.socket_path.empty() ? ListenOnPort(options.port) : ListenOnPath(options.socket_path);
  const auto listener =
      *Listener::Create(loop.get(), std::move(fd), options.listener, &service, &budget);
  service.more_stats = [&] { return Usage(*listener, budget); };
  auto terminate = loop->Add(signal_fd.get(), EPOLLIN, [&](uint32_t) {
    signalfd_siginfo info;
    if (read(signal_fd.get(), &info, sizeof(info)) != sizeof(info)) return;
    const absl::Time deadline = loop->Now() + absl::Milliseconds(options.drain_ms);
    listener->Drain(deadline, [&] { loop->Stop(); });
  });
  std::fflush(stdout);
  loop->Run();
  return 0;
}

}  // namespace
}  // namespace tensord::front

int main(int argc, char** argv) {
  tensord::front::Options options;
  CLI::App app("Echo server for tests of the network edge");
  app.add_option("--port", options.port);
  app.add_option("--socket_path", options.socket_path);
  app.add_option("--budget_bytes", options.budget_bytes);
  app.add_option("--open_files", options.open_files);
  app.add_option("--drain_ms", options.drain_ms);
  app.add_option("--connections_max", options.listener.connections_max);
  app.add_option("--body_bytes_max", options.listener.body_bytes_max);
  app.add_option("--inflated_bytes_max", options.listener.inflated_bytes_max);
  app.add_option("--http1", options.listener.protocols.http1);
  app.add_option("--http2", options.listener.protocols.http2);
  CLI11_PARSE(app, argc, argv);
  return tensord::front::Serve(options);
}
