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

WorkerLog::~WorkerLog() { loop_.Cancel(pause_); }

void WorkerLog::OnReadable() {
  NextSecond();
  Read();  // Once a turn: a flood gets its share of the loop, no more.
  if (bytes_ < limits::kLogBytesPerSecondMax || !watch_.active() || pause_ != 0) return;
  watch_.SetEvents(0);
  pause_ = loop_.At(second_ + absl::Seconds(1), [this] {
    pause_ = 0;
    if (watch_.active()) watch_.SetEvents(EPOLLIN);
  });
}

// False when the pipe is empty or closed.
bool WorkerLog::Read() {
  std::array<char, 16 * 1024> bytes;
  const ssize_t size = read(pipe_.get(), bytes.data(), bytes.size());
  if (size > 0) {
    bytes_ += static_cast<size_t>(size);
    Take({bytes.data(), static_cast<size_t>(size)});
    return true;
  }
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  watch_.Reset();
  if (!part_.empty()) Say(std::exchange(part_, {}));
  return false;
}

void WorkerLog::Finish() {
  constexpr int kReadsMax = 8;  // A pipe holds 64 KiB; somebody may still write to it.
  NextSecond();
  for (int i = 0; i < kReadsMax && watch_.active() && Read(); ++i) {
  }
  if (!part_.empty()) Say(std::exchange(part_, {}));
  SayDropped();
}

void WorkerLog::NextSecond() {
  if (loop_.Now() < second_ + absl::Seconds(1)) return;
  SayDropped();
  second_ = loop_.Now();
  lines_ = 0;
  bytes_ = 0;
}

void WorkerLog::SayDropped() {
  const int dropped = std::exchange(dropped_, 0);
  if (dropped > 0) line_(base::Cat(dropped, " log lines were dropped: too many a second"));
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
  if (line.empty()) return;
  if (++lines_ > limits::kLogLinesPerSecondMax) {
    ++dropped_;
  } else {
    line_(line);
  }
}

}  // namespace tensord::fleet
