// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/output.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "train/limits.h"

namespace tensord::train {
namespace {

constexpr char kEscape = '\x1b';
constexpr size_t kPipeAtomic = 4096;  // POLLOUT of a pipe means room for this much.

}  // namespace

std::vector<std::string> LineCutter::Feed(std::string_view bytes) {
  std::vector<std::string> lines;
  for (const char c : bytes) {
    if (c == '\n') {
      Cut(&lines);
      continue;
    }
    if (c == '\r') {
      if (!line_.empty()) {
        drawn_ = std::exchange(line_, {});
        redrawn_ = true;
      }
      returned_ = true;
      continue;
    }
    returned_ = false;
    line_.push_back(c);
    if (line_.size() >= limits::kLineBytesMax) Cut(&lines);
  }
  return lines;
}

void LineCutter::Cut(std::vector<std::string>* lines) {
  // "text\r\n" is a line's other end; "bar\rlonger bar\n" shows the longer bar.
  lines->push_back(line_.empty() && returned_ ? std::exchange(drawn_, {})
                                              : std::exchange(line_, {}));
  drawn_.clear();
  line_.clear();
  redrawn_ = returned_ = false;
}

std::string LineCutter::Progress() {
  if (!std::exchange(redrawn_, false)) return "";
  return line_.empty() ? drawn_ : line_;
}

std::string LineCutter::Rest() {
  std::string rest = line_.empty() ? std::exchange(drawn_, {}) : std::exchange(line_, {});
  return rest;
}

std::string Plain(std::string_view line) {
  std::string plain;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\b' || c == '\r') continue;
    if (c != kEscape) {
      plain.push_back(c);
      continue;
    }
    // "\x1b[32m": parameters up to the letter that ends it.
    if (i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && (line[i] < '@' || line[i] > '~')) ++i;
    }
  }
  return plain;
}

Console::Console()
    : streams_{{.fd = STDOUT_FILENO, .terminal = isatty(STDOUT_FILENO) == 1, .waiting = {}},
               {.fd = STDERR_FILENO, .terminal = isatty(STDERR_FILENO) == 1, .waiting = {}}} {}

void Console::Line(int fd, std::string_view prefix, std::string_view line) {
  const Stream& stream = streams_[fd == STDERR_FILENO ? 1 : 0];
  Text(fd, base::Cat("[", prefix, "] ", stream.terminal ? std::string(line) : Plain(line), "\n"));
}

void Console::Text(int fd, std::string_view text) {
  Stream& stream = streams_[fd == STDERR_FILENO ? 1 : 0];
  if (stream.waiting.size() + text.size() > limits::kConsoleBytesMax) {
    ++stream.dropped;
    return;
  }
  if (stream.dropped > 0 && stream.waiting.size() < limits::kConsoleBytesMax / 2) {
    stream.waiting += base::Cat("[tensord] ", std::exchange(stream.dropped, 0),
                                " lines are left out here: nobody read them; the files have all\n");
  }
  stream.waiting += text;
  Flush(&stream, 0);
}

void Console::Flush(bool last) {
  for (Stream& stream : streams_) Flush(&stream, last ? 1000 : 0);
}

void Console::Flush(Stream* stream, int wait_ms) {
  while (!stream->waiting.empty()) {
    pollfd ready{.fd = stream->fd, .events = POLLOUT, .revents = 0};
    if (poll(&ready, 1, wait_ms) <= 0) return;
    const size_t bytes = std::min(stream->waiting.size(), kPipeAtomic);
    const ssize_t wrote = write(stream->fd, stream->waiting.data(), bytes);
    if (wrote <= 0) {
      stream->waiting.clear();  // Nobody will ever read it.
      return;
    }
    stream->waiting.erase(0, static_cast<size_t>(wrote));
  }
}

}  // namespace tensord::train
