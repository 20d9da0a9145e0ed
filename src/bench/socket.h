// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "loop/event_loop.h"

namespace tensord::bench {

// A connected TCP socket on a loop, with what could not be written yet.
// Threads: the loop's.
class Socket {
 public:
  // Connects (blocking: it is the start of a benchmark). UNAVAILABLE names host and port.
  static absl::StatusOr<base::UniqueFd> Connect(const std::string& host, int port);

  // `on_bytes` gets what arrives; `on_closed` runs once when the peer has gone.
  Socket(loop::EventLoop& loop, base::UniqueFd fd, std::function<void(std::string_view)> on_bytes,
         std::function<void()> on_closed);

  // Bytes for the next Flush.
  std::string& out() { return out_; }
  // Writes what the kernel takes, the rest when it takes more.
  void Flush();
  bool open() const { return watch_.active(); }

 private:
  void OnReady(uint32_t events);
  void ReadAll();
  void Close();

  const base::UniqueFd fd_;
  const std::function<void(std::string_view)> on_bytes_;
  const std::function<void()> on_closed_;
  std::string in_;
  std::string out_;
  size_t written_ = 0;
  bool wants_write_ = false;
  loop::EventLoop::Watch watch_;
};

}  // namespace tensord::bench
