// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <utility>

#include "base/text.h"
#include "front/tls_stream.h"

namespace tensord::front {
namespace {

constexpr absl::Duration kTickEvery = absl::Seconds(1);
constexpr absl::Duration kDrainTickEvery = absl::Milliseconds(100);
// How many of the quietest connections are looked at for one that is idle.
constexpr int kEvictionLooks = 64;
// A peer that vanished without a word is noticed after about two minutes.
constexpr int kKeepAliveAfterSeconds = 60;
constexpr int kKeepAliveEverySeconds = 15;
constexpr int kKeepAliveProbes = 4;

base::UniqueFd OpenSpare() { return base::UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

std::string PeerName(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return base::Cat(text.data(), ":", ntohs(v4.sin_port));
  }
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    return base::Cat("[", text.data(), "]:", ntohs(v6.sin6_port));
  }
  return "unix";
}

// Connections inherit these from the listening socket (Linux). Best effort: they work without.
void TuneTcp(int fd) {
  const auto set = [fd](int level, int name, int value) {
    setsockopt(fd, level, name, &value, sizeof(value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveAfterSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveEverySeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveProbes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Create(loop::EventLoop* loop, base::UniqueFd fd,
                                                           const ListenerOptions& options,
                                                           Service* service,
                                                           base::ByteBudget* budget) {
  int listening = 0;
  socklen_t size = sizeof(listening);
  if (getsockopt(fd.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || listening == 0) {
    return absl::InvalidArgumentError(
        base::Cat("descriptor ", fd.get(), " is not a listening socket"));
  }
  TuneTcp(fd.get());
  const int flags = fcntl(fd.get(), F_GETFL);
  if (flags < 0 || fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    return absl::ErrnoToStatus(errno, "cannot make the listening socket non-blocking");
  }
  return std::unique_ptr<Listener>(new Listener(loop, std::move(fd), options, service, budget));
}

Listener::Listener(loop::EventLoop* loop, base::UniqueFd fd, const ListenerOptions& options,
                   Service* service, base::ByteBudget* budget)
    : options_(options),
      edge_{.loop = loop,
            .service = service,
            .budget = budget,
            .body_bytes_max = options.body_bytes_max,
            .inflated_bytes_max = options.inflated_bytes_max,
            .inflated_budget = options.inflated_budget,
            .grpc = options.grpc,
            .cors = options.cors,
            .door = options.door,
            .http2 = options.http2},
      read_scratch_(std::make_unique_for_overwrite<std::byte[]>(limits::kReadBytes)),
      fd_(std::move(fd)),
      spare_(OpenSpare()),
      self_(std::make_shared<Listener*>(this)) {
  WatchAccepts();
}

Listener::~Listener() {
  *self_ = nullptr;
  for (const loop::TimerId timer : {tick_, accept_again_, drain_end_}) edge_.loop->Cancel(timer);
  connections_.clear();
}

void Listener::WatchAccepts() {
  if (fd_.valid() && !watch_.active()) {
    watch_ = edge_.loop->Add(fd_.get(), EPOLLIN, [this](uint32_t) { OnReady(); });
  }
}

void Listener::OnReady() {
  if (full()) {
    // The one that makes room goes at the end of this iteration; the newcomer waits until then.
    if (!EvictIdle()) PauseAccepting(limits::kAcceptPause);
    return;
  }
  for (int i = 0; i < limits::kAcceptsPerTurn; ++i) {
    const int error = AcceptOne();
    if (error == 0) continue;
    // The kernel looks for a free descriptor before it looks for a newcomer: only the first failure
    // means that somebody waits.
    if (i == 0) OnAcceptError(error);
    return;
  }
}

// 0, or why nothing more is accepted now: EAGAIN also when there is no place.
int Listener::AcceptOne() {
  if (full()) return EAGAIN;
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  base::UniqueFd socket(accept4(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size,
                                SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.valid()) {
    ++counts_.accepted;

    Adopt(std::move(socket), PeerName(address));
    return 0;
  }
  const bool passing = errno == EINTR || errno == ECONNABORTED || errno == EPROTO;
  return passing ? 0 : errno;
}

// EMFILE, ENFILE, ENOBUFS, ENOMEM: the socket stays readable, so waiting without a pause would
// spin.
void Listener::OnAcceptError(int error) {
  if (error == EAGAIN || error == EWOULDBLOCK) return;
  if (EvictIdle()) return;
  if ((error == EMFILE || error == ENFILE) && spare_.valid()) {
    spare_.Reset();
    base::UniqueFd refused(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (refused.valid()) ++counts_.refused;
    refused.Reset();
    spare_ = OpenSpare();
    return;
  }
  if (!spare_.valid()) spare_ = OpenSpare();
  PauseAccepting(limits::kAcceptPause);
}

void Listener::Adopt(base::UniqueFd socket, std::string peer) {
  std::unique_ptr<ByteStream> stream = options_.tls == nullptr
                                           ? MakePlainStream(std::move(socket))
                                           : MakeTlsStream(*options_.tls->Get(), std::move(socket));
  if (stream == nullptr) {  // No memory for it: the newcomer sees its connection closed.
    ++counts_.refused;
    return;
  }
  connections_.push_back(std::make_unique<Connection>(this, std::move(stream), std::move(peer)));
  Connection* const connection = connections_.back().get();
  connection->place = std::prev(connections_.end());
  if (draining_) connection->StartDrain();
  if (tick_ == 0) tick_ = edge_.loop->At(edge_.loop->Now() + kTickEvery, [this] { Tick(); });
}

bool Listener::EvictIdle() {
  int looks = kEvictionLooks;
  for (const auto& connection : connections_) {
    if (connection->closed()) return true;  // Room comes at the end of this iteration anyway.
    if (connection->idle()) {
      ++counts_.evicted;
      connection->Abort();
      return true;
    }
    if (--looks == 0) break;
  }
  return false;
}

void Listener::PauseAccepting(absl::Duration wait) {
  watch_.Reset();
  if (accept_again_ != 0) return;
  accept_again_ = edge_.loop->At(edge_.loop->Now() + wait, [this] {
    accept_again_ = 0;
    WatchAccepts();
  });
}

void Listener::StopAccepting(Newcomers newcomers) {
  if (!fd_.valid()) return;
  // First, so that nobody joins the queue behind our back; what is in it stays acceptable.
  while (AcceptOne() == 0) {
  }
  if (newcomers == Newcomers::kRefuse) shutdown(fd_.get(), SHUT_RD);
  watch_.Reset();
  edge_.loop->Cancel(std::exchange(accept_again_, 0));
  fd_.Reset();
}

void Listener::Drain(absl::Time deadline, absl::AnyInvocable<void()> done) {
  StopAccepting(Newcomers::kRefuse);
  draining_ = true;
  drained_ = std::move(done);
  for (const auto& connection : connections_) connection->StartDrain();
  drain_end_ = edge_.loop->At(deadline, [this] {
    drain_end_ = 0;
    for (const auto& connection : connections_) connection->Abort();
  });
  edge_.loop->Cancel(std::exchange(tick_, 0));
  tick_ = edge_.loop->At(edge_.loop->Now(), [this] { Tick(); });
}

void Listener::FinishDrain() {
  if (!draining_ || !connections_.empty() || !drained_) return;
  edge_.loop->Cancel(std::exchange(drain_end_, 0));
  std::exchange(drained_, nullptr)();
}

size_t Listener::open_calls() const {
  size_t calls = 0;
  for (const auto& connection : connections_) calls += connection->open_calls();
  return calls;
}

void Listener::WantTurn(Connection* connection) {
  turns_.push_back(connection);
  WantTurns();
}

void Listener::OnActivity(Connection* connection) {
  connections_.splice(connections_.end(), connections_, connection->place);
}

void Listener::OnClosed(Connection* connection) {
  closed_.push_back(connection);
  WantTurns();
}

void Listener::WantTurns() {
  if (std::exchange(turns_wanted_, true)) return;
  edge_.loop->Defer([self = self_] {
    if (*self != nullptr) (*self)->RunTurns();
  });
}

void Listener::RunTurns() {
  turns_wanted_ = false;
  running_turns_.swap(turns_);
  for (Connection* connection : running_turns_) connection->RunTurn();
  running_turns_.clear();
  if (closed_.empty()) return;
  // A connection that closed in its own turn may have asked for another one just before.
  std::erase_if(turns_, [](const Connection* connection) { return connection->closed(); });
  for (const Connection* connection : closed_) connections_.erase(connection->place);
  closed_.clear();
  if (accept_again_ != 0) {
    edge_.loop->Cancel(std::exchange(accept_again_, 0));
    WatchAccepts();
  }
  FinishDrain();
}

void Listener::Tick() {
  tick_ = 0;
  const absl::Time now = edge_.loop->Now();
  for (const auto& connection : connections_) connection->OnTick(now);
  if (connections_.empty()) return FinishDrain();
  tick_ = edge_.loop->At(now + (draining_ ? kDrainTickEvery : kTickEvery), [this] { Tick(); });
}

}  // namespace tensord::front
