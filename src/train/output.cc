// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/output.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "train/limits.h"

namespace tensord::train {
namespace {

constexpr char kEscape = '\x1b';
constexpr size_t kPipeAtomic = 4096;  // POLLOUT of a pipe means room for this much.
constexpr int kColumns = 79;          // Of a terminal that does not tell.
constexpr size_t kRows = 23;

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

std::string Fitted(std::string_view line, int columns) {
  std::string fitted;
  int used = 0;
  for (size_t i = 0; i < line.size();) {
    const auto first = static_cast<unsigned char>(line[i]);
    size_t bytes = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    bytes = std::min(bytes, line.size() - i);
    const std::string_view character = line.substr(i, bytes);
    i += bytes;
    const bool control = first < 0x20 || first == 0x7f;
    const bool stray = first >= 0x80 && first < 0xc0;
    // C1 controls, which some terminals obey.
    const bool hidden =
        first == 0xc2 && bytes == 2 && static_cast<unsigned char>(character[1]) < 0xa0;
    if (stray || hidden) continue;
    // From U+2E80 on, most characters are two columns wide, as is most beyond 16 bits.
    const bool wide = first == 0xf0 || (first >= 0xe2 && bytes == 3 && character >= "\xe2\xba\x80");
    used += wide ? 2 : 1;
    if (used > columns) break;
    fitted += control ? std::string_view(" ") : character;
  }
  return fitted;
}

Console::Stream Console::Open(int fd, const Setup& setup) {
  const bool terminal = isatty(fd) == 1;
  return {.fd = fd,
          .colours = terminal && setup.colours && setup.terminal != "dumb",
          .rewrites = terminal && !setup.terminal.empty() && setup.terminal != "dumb"};
}

Console::Console(const Setup& setup) : streams_{Open(setup.out, setup), Open(setup.err, setup)} {
  struct stat out {
  }, err{};
  shared_ = streams_[0].rewrites && streams_[1].rewrites && fstat(setup.out, &out) == 0 &&
            fstat(setup.err, &err) == 0 && out.st_rdev == err.st_rdev;
}

void Console::Line(int fd, std::string_view prefix, std::string_view line) {
  Stream& stream = streams_[At(fd)];
  const size_t ended = std::erase_if(
      stream.bars, [&](const Bar& bar) { return bar.rank == prefix && bar.fd == fd; });
  stream.stale |= ended > 0;
  Text(fd, base::Cat("[", prefix, "] ", stream.colours ? std::string(line) : Plain(line), "\n"));
}

void Console::Progress(int fd, std::string_view rank, std::string_view state) {
  Stream& stream = streams_[At(fd)];
  if (!stream.rewrites) {
    if (!state.empty()) Line(fd, rank, state);
    return;
  }
  const auto at = std::ranges::find(stream.bars, rank, &Bar::rank);
  if (at == stream.bars.end()) {
    if (state.empty()) return;
    // "worker/2" before "worker/10".
    const auto key = [](std::string_view name) { return std::pair(name.size(), name); };
    const auto next = std::ranges::find_if(
        stream.bars, [&](const Bar& bar) { return key(bar.rank) > key(rank); });
    stream.bars.insert(next, {.rank = std::string(rank), .fd = fd, .state = std::string(state)});
  } else if (!state.empty()) {
    at->fd = fd;
    at->state = state;
  } else if (at->fd == fd) {
    stream.bars.erase(at);
  } else {
    return;
  }
  stream.stale = true;
  Flush(&stream, 0);
}

void Console::Text(int fd, std::string_view text) {
  Stream& stream = streams_[At(fd)];
  if (stream.waiting.size() + text.size() > limits::kConsoleBytesMax) {
    ++stream.dropped;
    return;
  }
  Erase(&stream);
  if (stream.dropped > 0 && stream.waiting.size() < limits::kConsoleBytesMax / 2) {
    stream.waiting += base::Cat("[tensord] ", std::exchange(stream.dropped, 0),
                                " lines are left out here: nobody read them; the files have all\n");
  }
  stream.waiting += text;
  Flush(&stream, 0);
}

void Console::Erase(Stream* stream) {
  if (stream->drawn == 0) return;
  stream->waiting += '\r';
  if (stream->drawn > 1) stream->waiting += base::Cat("\x1b[", stream->drawn - 1, "A");
  stream->waiting += "\x1b[J";  // From here to the end of the screen.
  stream->drawn = 0;
  stream->stale = !stream->bars.empty();
}

void Console::Draw(Stream* stream) {
  Erase(stream);
  winsize size{};
  if (ioctl(stream->fd, TIOCGWINSZ, &size) != 0) size = {};
  const int columns = size.ws_col > 1 ? size.ws_col - 1 : kColumns;  // The last one may wrap.
  // Lines that scrolled out cannot be rewritten.
  const size_t rows = size.ws_row > 2 ? size.ws_row - 1 : kRows;
  const size_t shown = stream->bars.size() <= rows ? stream->bars.size() : rows - 1;
  for (size_t i = 0; i < shown; ++i) {
    const Bar& bar = stream->bars[i];
    stream->waiting += base::Cat(i == 0 ? "" : "\n",
                                 Fitted(base::Cat("[", bar.rank, "] ", Plain(bar.state)), columns));
  }
  if (shown < stream->bars.size()) {
    stream->waiting +=
        "\n" + Fitted(base::Cat("(", stream->bars.size() - shown, " more)"), columns);
  }
  stream->drawn = static_cast<int>(std::min(stream->bars.size(), shown + 1));
  stream->stale = false;
}

void Console::Flush(bool last) {
  for (Stream& stream : streams_) {
    if (last) {
      stream.stale |= !stream.bars.empty();
      stream.bars.clear();
    }
    Flush(&stream, last ? 1000 : 0);
  }
}

void Console::Flush(Stream* stream, int wait_ms) {
  Write(stream, wait_ms);
  // Not more often than it is read: what is drawn meanwhile nobody would see.
  if (!stream->stale || !stream->waiting.empty()) return;
  Draw(stream);
  Write(stream, wait_ms);
}

void Console::Write(Stream* stream, int wait_ms) {
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
