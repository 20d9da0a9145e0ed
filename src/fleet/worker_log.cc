// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/worker_log.h"

#include <errno.h>
#include <sys/epoll.h>

#include <array>
#include <utility>

#include "base/limits.h"
#include "base/text.h"

namespace tensord::fleet {

WorkerLog::WorkerLog(loop::EventLoop& loop, base::UniqueFd pipe, OnLine line)
    : loop_(loop), pipe_(std::move(pipe)), line_(std::move(line)), second_(loop.Now()) {
  watch_ = loop_.Add(pipe_.get(), EPOLLIN, [this](uint32_t) { OnReadable(); });
}

void WorkerLog::OnReadable() {
  std::array<char, 16 * 1024>
      bytes;  // One read a turn: a flood gets its share of the loop, no more.
  const ssize_t size = read(pipe_.get(), bytes.data(), bytes.size());
  if (size > 0) return Take({bytes.data(), static_cast<size_t>(size)});
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  watch_.Reset();
  if (!part_.empty()) Say(std::exchange(part_, {}));
}

void WorkerLog::Finish() {
  constexpr int kReadsMax = 8;  // A pipe holds 64 KiB; somebody may still write to it.
  for (int i = 0; i < kReadsMax && watch_.active(); ++i) OnReadable();
}

void WorkerLog::Take(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (part_.size() < limits::kLogLineBytesMax) {
      part_ += piece.substr(0, limits::kLogLineBytesMax - part_.size());
    }
    if (end == std::string_view::npos) return;
    Say(std::exchange(part_, {}));
    bytes.remove_prefix(end + 1);
  }
}

void WorkerLog::Say(std::string_view line) {
  const absl::Time now = loop_.Now();
  if (now >= second_ + absl::Seconds(1)) {
    if (dropped_ > 0) line_(base::Cat(dropped_, " log lines were dropped: too many a second"));
    second_ = now;
    lines_ = 0;
    dropped_ = 0;
  }
  if (++lines_ > limits::kLogLinesPerSecondMax) {
    ++dropped_;
  } else if (!line.empty()) {
    line_(line);
  }
}

}  // namespace tensord::fleet
