// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// The floor under every server's latency on this machine: the round trip of a few bytes over
// loopback TCP between two processes that only block in recv.
//
//   tcp_floor SECONDS
//
// prints one JSON object: the median and the 99th percentile in microseconds.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

// About a small Predict and its answer, with HTTP/2's headers.
constexpr size_t kBytes = 128;

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

void NoDelay(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

bool ReadAll(int socket, char* bytes) {
  for (size_t got = 0; got < kBytes;) {
    const ssize_t more = recv(socket, bytes + got, kBytes - got, 0);
    if (more <= 0) return false;
    got += static_cast<size_t>(more);
  }
  return true;
}

void Echo(int listener) {
  const int socket = accept(listener, nullptr, nullptr);
  NoDelay(socket);
  char bytes[kBytes];
  while (ReadAll(socket, bytes) && send(socket, bytes, kBytes, 0) == kBytes) continue;
}

int Measure(uint16_t port, double seconds) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = Loopback(port);
  if (connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return 1;
  NoDelay(socket);
  char bytes[kBytes] = {};
  std::vector<double> microseconds;
  const Clock::time_point end = Clock::now() + std::chrono::microseconds(int64_t(seconds * 1e6));
  for (Clock::time_point now = Clock::now(); now < end;) {
    if (send(socket, bytes, kBytes, 0) != kBytes || !ReadAll(socket, bytes)) return 1;
    const Clock::time_point then = Clock::now();
    microseconds.push_back(std::chrono::duration<double, std::micro>(then - now).count());
    now = then;
  }
  std::sort(microseconds.begin(), microseconds.end());
  std::printf("{\"p50_us\": %.2f, \"p99_us\": %.2f}\n", microseconds[microseconds.size() / 2],
              microseconds[microseconds.size() * 99 / 100]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: tcp_floor SECONDS\n");
    return 2;
  }
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener, 1) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::perror("tcp_floor");
    return 1;
  }
  if (fork() == 0) {
    Echo(listener);
    _exit(0);
  }
  return Measure(ntohs(address.sin_port), std::atof(argv[1]));
}
