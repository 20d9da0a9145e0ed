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

// Our standard output and error. Never waits: a slow reader makes lines wait, and at last fall out
// with a word about it; the files have them all.
class Console {
 public:
  Console();
  // A line on 1 or 2, with "[worker/1] " in front.
  void Line(int fd, std::string_view prefix, std::string_view line);
  void Text(int fd, std::string_view text);
  // Tries to write what waits. `last` waits a little for the reader.
  void Flush(bool last = false);
  bool waiting() const { return !streams_[0].waiting.empty() || !streams_[1].waiting.empty(); }

 private:
  struct Stream {
    int fd;
    bool terminal = false;
    std::string waiting = {};
    size_t dropped = 0;
  };
  void Flush(Stream* stream, int wait_ms);

  Stream streams_[2];
};

}  // namespace tensord::train
