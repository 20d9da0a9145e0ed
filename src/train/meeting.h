// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "loop/event_loop.h"
#include "train/job.h"
#include "train/link.h"
#include "train/secure.h"

// How agents meet over TCP without any other service.
namespace tensord::train {

// The leader's side: takes agents in, knows them by NodeId, hears their beats.
// Threads: the loop's.
class MeetingHost {
 public:
  // UNAVAILABLE when the port is taken. `secure`: TLS for all, outlives this; null: none.
  static absl::StatusOr<std::unique_ptr<MeetingHost>> Listen(const std::string& address,
                                                             std::string token,
                                                             const SecureSide* secure,
                                                             loop::EventLoop* loop);
  ~MeetingHost();

  // `feed` hears FromNode and NodeLost.
  void Start(std::function<void(const Event&)> feed);
  void Send(NodeId node, const Command& command);
  // Before the end: what waits goes out, as far as sockets take it at once.
  void Flush();

 private:
  struct Guest {
    std::unique_ptr<Link> link;
    bool known = false;  // Its first message was right.
    absl::Time heard;
  };
  MeetingHost(base::UniqueFd socket, std::string token, const SecureSide* secure,
              loop::EventLoop* loop)
      : socket_(std::move(socket)), token_(std::move(token)), secure_(secure), loop_(loop) {}
  void Accept();
  void OnLine(NodeId node, const std::string& line);
  void Drop(NodeId node, const std::string& why);
  void Beat();

  const base::UniqueFd socket_;
  const std::string token_;
  const SecureSide* const secure_;
  loop::EventLoop* const loop_;
  loop::EventLoop::Watch watch_;
  loop::TimerId timer_ = 0;
  std::function<void(const Event&)> feed_;
  NodeId last_ = 0;
  std::map<NodeId, Guest> guests_;
};

// Another agent's side: connects, and again when the leader is gone, until the wait is over.
// Threads: the loop's.
class MeetingGuest {
 public:
  struct Setup {
    std::string address = {};
    std::string token = {};
    const SecureSide* secure = nullptr;  // TLS; outlives this.
    absl::Duration wait = absl::Minutes(10);
    Joined joined = {};  // An empty address becomes the one that we reach the leader from.
  };
  using Lost = std::function<void(const std::string& why, bool for_good)>;

  MeetingGuest(Setup setup, loop::EventLoop* loop);
  ~MeetingGuest();

  void Start(std::function<void(const Command&)> obey, Lost lost);
  void Send(const Report& report);
  bool connected() const { return link_ != nullptr; }

 private:
  void Connect();
  void Connected();
  void OnLine(const std::string& line);
  void Fail(const std::string& why);
  void Beat();

  const Setup setup_;
  loop::EventLoop* const loop_;
  std::function<void(const Command&)> obey_;
  Lost lost_;
  absl::Time give_up_;
  base::UniqueFd connecting_;
  loop::EventLoop::Watch connect_watch_;
  std::unique_ptr<Link> link_;
  bool met_ = false;                // The leader said something on this connection.
  std::unique_ptr<Link> old_link_;  // Goes with the next connection: it may be on the stack.
  absl::Time heard_;
  loop::TimerId retry_timer_ = 0;
  loop::TimerId beat_timer_ = 0;
  std::string last_words_;  // Said once, not each half second.
};

}  // namespace tensord::train
