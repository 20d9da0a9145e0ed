// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/meeting.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "obs/log.h"
#include "train/address.h"
#include "train/codec.h"
#include "train/limits.h"

namespace tensord::train {
namespace {

constexpr std::string_view kBeat = "beat";
constexpr int kBacklog = 128;

// Takes as long for any wrong token of the same length.
bool SameToken(std::string_view a, std::string_view b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

}  // namespace

// ---- The leader's side --------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<MeetingHost>> MeetingHost::Listen(const std::string& address,
                                                                 std::string token,
                                                                 const SecureSide* tls,
                                                                 loop::EventLoop* loop) {
  std::pair<std::string, int> parts;
  ASSIGN_OR_RETURN(parts, SplitAddress(address));
  base::UniqueFd fd(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1, off = 0;
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(static_cast<uint16_t>(parts.second));
  sockaddr_in any4{};
  any4.sin_family = AF_INET;
  any4.sin_port = any6.sin6_port;
  const bool six = fd.valid();
  if (!six) fd.Reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (six) setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  const sockaddr* name =
      six ? reinterpret_cast<sockaddr*>(&any6) : reinterpret_cast<sockaddr*>(&any4);
  const socklen_t size = six ? sizeof(any6) : sizeof(any4);
  if (bind(fd.get(), name, size) != 0 || listen(fd.get(), kBacklog) != 0) {
    return absl::UnavailableError(base::Cat("cannot meet at port ", parts.second, ": ",
                                            std::strerror(errno),
                                            "; choose another one with --rdzv"));
  }
  return std::unique_ptr<MeetingHost>(new MeetingHost(std::move(fd), std::move(token), tls, loop));
}

MeetingHost::~MeetingHost() { loop_->Cancel(timer_); }

void MeetingHost::Start(std::function<void(const Event&)> feed) {
  feed_ = std::move(feed);
  watch_ = loop_->Add(socket_.get(), EPOLLIN, [this](uint32_t) { Accept(); });
  timer_ = loop_->At(loop_->ClockNow() + limits::kLinkBeatEvery, [this] { Beat(); });
}

void MeetingHost::Accept() {
  base::UniqueFd fd(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid()) return;
  if (guests_.size() >= static_cast<size_t>(limits::kNodesMax)) return;
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const NodeId node = ++last_;
  Guest& guest = guests_[node];
  auto stream = secure_ == nullptr ? nullptr : secure_->Accept(fd.get());
  guest.link = std::make_unique<Link>(std::move(fd), loop_, std::move(stream));
  guest.heard = loop_->ClockNow();
  guest.link->Start([this, node](const std::string& line) { OnLine(node, line); },
                    [this, node](const std::string& why) { Drop(node, why); });
}

void MeetingHost::OnLine(NodeId node, const std::string& line) {
  const auto at = guests_.find(node);
  if (at == guests_.end()) return;
  at->second.heard = loop_->ClockNow();
  if (line == kBeat) return;
  const absl::StatusOr<Report> report = ParseReport(line);
  if (!report.ok()) {
    const std::string why(base::Message(report.status()));
    loop_->Defer([this, node, why] { Drop(node, why); });
    return;
  }
  if (const auto* joined = std::get_if<Joined>(&*report); joined != nullptr) {
    const std::string token(TokenOf(line));
    if (!SameToken(token, token_)) {
      obs::Warn("an agent on {} brought a wrong token and was sent away", joined->facts.host);
      at->second.link->Send(
          ToLine(Command(Finish{1, "the leader has another token: give both the same"})));
      loop_->Defer([this, node] { Drop(node, "wrong token"); });
      return;
    }
    at->second.known = true;
  }
  if (at->second.known) feed_(FromNode{node, *report, absl::ToUnixMillis(base::WallTime())});
}

void MeetingHost::Drop(NodeId node, const std::string& why) {
  const auto at = guests_.find(node);
  if (at == guests_.end()) return;
  const bool known = at->second.known;
  guests_.erase(at);
  if (known) {
    feed_(NodeLost{node, why});
  } else {
    obs::Warn("a connection to the meeting point was none of an agent's: {}", why);
  }
}

void MeetingHost::Beat() {
  std::vector<NodeId> silent;
  for (auto& [node, guest] : guests_) {
    guest.link->Send(std::string(kBeat));
    const absl::Duration limit = guest.known ? limits::kLinkBeatLost : limits::kHelloWait;
    if (loop_->ClockNow() - guest.heard > limit) silent.push_back(node);
  }
  for (const NodeId node : silent) Drop(node, "it is silent");
  timer_ = loop_->At(loop_->ClockNow() + limits::kLinkBeatEvery, [this] { Beat(); });
}

void MeetingHost::Send(NodeId node, const Command& command) {
  if (const auto at = guests_.find(node); at != guests_.end()) {
    at->second.link->Send(ToLine(command));
  }
}

void MeetingHost::Flush() {
  for (auto& [node, guest] : guests_) guest.link->Flush();
}

// ---- The other agents' side ---------------------------------------------------------------------

MeetingGuest::MeetingGuest(Setup setup, loop::EventLoop* loop)
    : setup_(std::move(setup)), loop_(loop) {}

MeetingGuest::~MeetingGuest() {
  loop_->Cancel(retry_timer_);
  loop_->Cancel(beat_timer_);
}

void MeetingGuest::Start(std::function<void(const Command&)> obey, Lost lost) {
  obey_ = std::move(obey);
  lost_ = std::move(lost);
  give_up_ = loop_->ClockNow() + setup_.wait;
  Connect();
  Beat();
}

void MeetingGuest::Connect() {
  old_link_.reset();
  auto socket = StartConnect(setup_.address);
  if (!socket.ok()) return Fail(std::string(base::Message(socket.status())));
  connecting_ = *std::move(socket);
  connect_watch_ = loop_->Add(connecting_.get(), EPOLLOUT, [this](uint32_t) { Connected(); });
}

void MeetingGuest::Connected() {
  connect_watch_.Reset();
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(connecting_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    connecting_.Reset();
    return Fail(std::strerror(error));
  }
  const int on = 1;
  setsockopt(connecting_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  Joined joined = setup_.joined;
  if (joined.address.empty()) joined.address = LocalHost(connecting_.get());
  joined.facts.clock_ms = absl::ToUnixMillis(base::WallTime());
  std::unique_ptr<SecureStream> stream;
  if (setup_.secure != nullptr) {
    stream = setup_.secure->Connect(connecting_.get(), SplitAddress(setup_.address)->first);
  }
  link_ = std::make_unique<Link>(std::move(connecting_), loop_, std::move(stream));
  heard_ = loop_->ClockNow();
  link_->Start([this](const std::string& line) { OnLine(line); },
               [this](const std::string& why) { Fail(base::Cat("the leader is gone: ", why)); });
  link_->Send(WithToken(ToLine(Report(joined)), setup_.token));
  obs::Info("met the leader at {}; this machine is {}", setup_.address, joined.address);
  last_words_.clear();
  met_ = false;
}

void MeetingGuest::OnLine(const std::string& line) {
  heard_ = loop_->ClockNow();
  met_ = true;
  if (line == kBeat) return;
  const absl::StatusOr<Command> command = ParseCommand(line);
  if (!command.ok()) {
    obs::Error("the leader at {} speaks another language: {}", setup_.address,
               std::string(base::Message(command.status())));
    return;
  }
  obey_(*command);
}

void MeetingGuest::Fail(const std::string& why) {
  const bool had = link_ != nullptr;
  old_link_ = std::move(link_);
  if (had) old_link_->Close();
  // Only a leader that talked to us is worth waiting for anew.
  if (had && std::exchange(met_, false)) give_up_ = loop_->ClockNow() + setup_.wait;
  const bool over = loop_->ClockNow() >= give_up_;
  if (had || over) {
    lost_(over ? base::Cat("no leader at ", setup_.address, " within ",
                           absl::ToInt64Seconds(setup_.wait), " s: ", why)
               : why,
          over);
  }
  if (over) return;
  if (why != last_words_) obs::Info("{}: {}; trying on", setup_.address, why);
  last_words_ = why;
  loop_->Cancel(retry_timer_);
  retry_timer_ = loop_->At(loop_->ClockNow() + limits::kConnectRetry, [this] { Connect(); });
}

void MeetingGuest::Send(const Report& report) {
  if (link_ != nullptr) link_->Send(ToLine(report));
}

void MeetingGuest::Beat() {
  if (link_ != nullptr) {
    link_->Send(std::string(kBeat));
    if (loop_->ClockNow() - heard_ > limits::kLinkBeatLost) Fail("the leader is silent");
  }
  beat_timer_ = loop_->At(loop_->ClockNow() + limits::kLinkBeatEvery, [this] { Beat(); });
}

}  // namespace tensord::train
