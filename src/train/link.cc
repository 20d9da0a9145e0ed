// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/link.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "base/text.h"
#include "train/limits.h"

namespace tensord::train {

void Link::Start(OnLine on_line, OnEnd on_end) {
  on_line_ = std::move(on_line);
  on_end_ = std::move(on_end);
  watch_ = loop_->Add(socket_.get(), EPOLLIN, [this](uint32_t events) {
    if ((events & EPOLLOUT) != 0) Flush();
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) Read();
  });
}

void Link::Read() {
  // TLS may hold more than the socket tells of.
  while (ReadSome() && secure_ != nullptr && secure_->pending()) {
  }
  // A handshake that went on may let out what waited for it.
  if (secure_ != nullptr) Flush();
}

bool Link::ReadSome() {
  char bytes[16 << 10];
  const ssize_t got = secure_ == nullptr ? recv(socket_.get(), bytes, sizeof(bytes), MSG_DONTWAIT)
                                         : secure_->Read(bytes, sizeof(bytes));
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got < 0) {
    End(secure_ == nullptr || secure_->error().empty() ? std::strerror(errno) : secure_->error());
  }
  if (got == 0) End("it closed the connection");
  if (got <= 0) return false;
  in_.append(bytes, static_cast<size_t>(got));
  size_t end = 0;
  while (!ended_ && (end = in_.find('\n')) != std::string::npos) {
    const std::string line = in_.substr(0, end);
    in_.erase(0, end + 1);
    on_line_(line);
  }
  if (in_.size() > limits::kLinkLineBytesMax) End("it sent a line without end");
  return !ended_;
}

void Link::Send(const std::string& line) {
  if (ended_) return;
  out_ += base::Cat(line, "\n");
  Flush();
  if (out_.size() > limits::kLinkBacklogBytesMax) End("it does not read what it is sent");
}

void Link::Flush() {
  while (!ended_ && !out_.empty()) {
    const ssize_t sent = secure_ == nullptr ? send(socket_.get(), out_.data(), out_.size(),
                                                   MSG_DONTWAIT | MSG_NOSIGNAL)
                                            : secure_->Write(out_.data(), out_.size());
    if (sent <= 0) break;  // Full, or broken: reading says which.
    out_.erase(0, static_cast<size_t>(sent));
  }
  if (!watch_.active()) return;
  // A handshake that waits to read must not spin on a socket that takes bytes.
  const bool writes = !out_.empty() && (secure_ == nullptr || secure_->wants_write());
  watch_.SetEvents(writes ? static_cast<uint32_t>(EPOLLIN | EPOLLOUT)
                          : static_cast<uint32_t>(EPOLLIN));
}

void Link::Close() {
  ended_ = true;
  watch_.Reset();
}

void Link::End(const std::string& why) {
  if (ended_) return;
  ended_ = true;
  watch_.Reset();
  // In its own time: whoever reads or sends now is still inside this object.
  const auto end = [on_end = on_end_, why] { on_end(why); };
  loop_->Defer(end);
}

}  // namespace tensord::train
