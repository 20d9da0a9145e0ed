// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/unique_fd.h"

// spdlog's, without its headers.
namespace spdlog {
class logger;
namespace details {
class thread_pool;
}
}  // namespace spdlog

namespace tensord::obs {

// So many lines wait for whoever reads them, some hundred bytes each; then the oldest are lost.
inline constexpr size_t kLinesWaitingMax = 1024;

// Writes all of it, however long that takes. What cannot be written, as to a full disk or a closed
// pipe, is lost.
void WriteOut(int fd, std::string_view text);

// Writes lines to a descriptor on a thread of its own, which alone waits for whoever reads them.
// Threads: safe from any. The destructor waits until all is written.
class LineWriter {
 public:
  // The line, with its newline, that says how many were lost before the next one.
  using LostLine = std::function<std::string(uint64_t lines)>;

  // `fd` stays open longer than this.
  static std::unique_ptr<LineWriter> Start(int fd, LostLine lost_line);

  // A whole line with its newline.
  void Write(std::string_view line);
  // Waits until what was written before is out, at most for `longest`. False: it is not.
  bool Flush(absl::Duration longest);

 private:
  class Sink;
  LineWriter() = default;

  std::shared_ptr<Sink> sink_;
  std::shared_ptr<spdlog::details::thread_pool> thread_;
  std::shared_ptr<spdlog::logger> logger_;
};

}  // namespace tensord::obs
