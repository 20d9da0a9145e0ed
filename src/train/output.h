// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>
#include <vector>

// The output of ranks on its way to people.
namespace tensord::train {

// Cuts a stream of bytes into lines. A progress bar that redraws itself with carriage returns is
// one line, of which the last state counts. Pure.
class LineCutter {
 public:
  // Complete lines, without their ends.
  std::vector<std::string> Feed(std::string_view bytes);
  // The state of a progress bar that was redrawn since the last call, or "".
  std::string Progress();
  // What remains at the end of the stream, or "".
  std::string Rest();

 private:
  void Cut(std::vector<std::string>* lines);

  std::string line_;   // Since the last end of line or carriage return.
  std::string drawn_;  // The last full state of a progress bar.
  bool redrawn_ = false;
  bool returned_ = false;  // The last byte was a carriage return.
};

// Without colours, cursor movements and backspaces.
std::string Plain(std::string_view line);

// As much of a line as has room in so many columns, without what moves the cursor.
std::string Fitted(std::string_view line, int columns);

// Our standard output and error. Never waits: a slow reader makes lines wait, and at last fall out
// with a word about it; the files have them all.
//
// On a terminal that can move its cursor, progress is one line a rank at the bottom, rewritten in
// place while other lines scroll above it; elsewhere each state is a line.
class Console {
 public:
  struct Setup {
    int out = 1;
    int err = 2;
    std::string_view terminal = {};  // TERM; empty, or "dumb": its cursor stays where it is.
    bool colours = true;
  };
  Console() : Console(Setup{}) {}
  explicit Console(const Setup& setup);
  // A line on 1 or 2, with "[worker/1] " in front. It ends the rank's progress there.
  void Line(int fd, std::string_view prefix, std::string_view line);
  void Text(int fd, std::string_view text);
  // The state of the rank's progress bar on 1 or 2; "": it is over.
  void Progress(int fd, std::string_view rank, std::string_view state);
  // Whether progress there is rewritten in place.
  bool rewrites(int fd) const { return streams_[At(fd)].rewrites; }
  // Tries to write what waits. `last` waits a little for the reader, and takes progress away.
  void Flush(bool last = false);
  bool waiting() const { return !streams_[0].waiting.empty() || !streams_[1].waiting.empty(); }

 private:
  struct Bar {
    std::string rank;
    int fd;  // 1 or 2, where the rank wrote it.
    std::string state;
  };
  struct Stream {
    int fd;
    bool colours = false;
    bool rewrites = false;
    std::string waiting = {};
    size_t dropped = 0;
    std::vector<Bar> bars = {};  // In the order of ranks.
    int drawn = 0;               // Lines of them on the screen, once all that waits is written.
    bool stale = false;          // What is drawn is not what `bars` say.
  };
  static Stream Open(int fd, const Setup& setup);
  // Two on one terminal are written as one, so that each knows where the cursor is.
  size_t At(int fd) const { return fd == 2 && !shared_ ? 1 : 0; }
  void Erase(Stream* stream);
  void Draw(Stream* stream);
  void Flush(Stream* stream, int wait_ms);
  void Write(Stream* stream, int wait_ms);

  Stream streams_[2];
  bool shared_ = false;
};

}  // namespace tensord::train
