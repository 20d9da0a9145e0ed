// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <string>

#include "base/unique_fd.h"
#include "loop/event_loop.h"

namespace tensord::train {

// A connection that carries lines. A peer that sends endless ones, or reads none, is cut off.
// Threads: the loop's.
class Link {
 public:
  using OnLine = std::function<void(const std::string& line)>;
  using OnEnd = std::function<void(const std::string& why)>;  // Once; the link may go in it.

  Link(base::UniqueFd socket, loop::EventLoop* loop) : socket_(std::move(socket)), loop_(loop) {}

  void Start(OnLine on_line, OnEnd on_end);
  void Send(const std::string& line);
  void Flush();
  // Hears and says no more, and tells nobody.
  void Close();
  int fd() const { return socket_.get(); }

 private:
  void Read();
  void End(const std::string& why);

  const base::UniqueFd socket_;
  loop::EventLoop* const loop_;
  loop::EventLoop::Watch watch_;
  OnLine on_line_;
  OnEnd on_end_;
  std::string in_, out_;
  bool ended_ = false;
};

}  // namespace tensord::train
