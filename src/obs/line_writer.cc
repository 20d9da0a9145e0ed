// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "obs/line_writer.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

namespace tensord::obs {

void WriteOut(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EAGAIN) {
      // Somebody who shares it has made it non-blocking.
      pollfd wait{.fd = fd, .events = POLLOUT, .revents = 0};
      (void)poll(&wait, 1, -1);
      continue;
    }
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

// Of the thread.
class LineWriter::Sink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  Sink(int fd, LostLine lost_line) : fd_(fd), lost_line_(std::move(lost_line)) {}

  void Watch(std::weak_ptr<spdlog::details::thread_pool> thread) { thread_ = std::move(thread); }
  int flushed() const { return flushed_.get(); }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::shared_ptr<spdlog::details::thread_pool> thread = thread_.lock();
    const uint64_t lost = thread == nullptr ? told_ : thread->overrun_counter();
    if (lost > told_) WriteOut(fd_, lost_line_(lost - std::exchange(told_, lost)));
    WriteOut(fd_, {message.payload.data(), message.payload.size()});
  }
  void flush_() override { eventfd_write(flushed_.get(), 1); }

  const int fd_;
  const LostLine lost_line_;
  const base::UniqueFd flushed_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::weak_ptr<spdlog::details::thread_pool> thread_;
  uint64_t told_ = 0;
};

std::unique_ptr<LineWriter> LineWriter::Start(int fd, LostLine lost_line) {
  auto writer = std::unique_ptr<LineWriter>(new LineWriter());
  writer->sink_ = std::make_shared<Sink>(fd, std::move(lost_line));
  // Signals are for the threads that know what to do with them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  writer->thread_ = std::make_shared<spdlog::details::thread_pool>(kLinesWaitingMax, 1);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  writer->sink_->Watch(writer->thread_);
  writer->logger_ = std::make_shared<spdlog::async_logger>(
      "tensord", writer->sink_, writer->thread_, spdlog::async_overflow_policy::overrun_oldest);
  return writer;
}

void LineWriter::Write(std::string_view line) {
  logger_->log(spdlog::level::info, spdlog::string_view_t(line.data(), line.size()));
}

bool LineWriter::Flush(absl::Duration longest) {
  eventfd_t old = 0;
  eventfd_read(sink_->flushed(), &old);  // Of one that was given up.
  logger_->flush();
  pollfd wait{.fd = sink_->flushed(), .events = POLLIN, .revents = 0};
  return poll(&wait, 1, static_cast<int>(absl::ToInt64Milliseconds(longest))) == 1;
}

}  // namespace tensord::obs
