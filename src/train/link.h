// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "loop/event_loop.h"
#include "train/secure.h"

namespace tensord::train {

// A connection that carries lines. A peer that sends endless ones, or reads none, is cut off.
// Threads: the loop's.
class Link {
 public:
  using OnLine = std::function<void(const std::string& line)>;
  using OnEnd = std::function<void(const std::string& why)>;  // Once; the link may go in it.

  // `secure`: TLS on that socket; null: none.
  Link(base::UniqueFd socket, loop::EventLoop* loop, std::unique_ptr<SecureStream> secure)
      : socket_(std::move(socket)), loop_(loop), secure_(std::move(secure)) {}

  void Start(OnLine on_line, OnEnd on_end);
  void Send(const std::string& line);
  void Flush();
  // Hears and says no more, and tells nobody.
  void Close();
  int fd() const { return socket_.get(); }

 private:
  void Read();
  // One piece; false when there is no more now.
  bool ReadSome();
  void End(const std::string& why);

  const base::UniqueFd socket_;
  loop::EventLoop* const loop_;
  const std::unique_ptr<SecureStream> secure_;
  loop::EventLoop::Watch watch_;
  OnLine on_line_;
  OnEnd on_end_;
  std::string in_, out_;
  bool ended_ = false;
};

}  // namespace tensord::train
