// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <charconv>
#include <deque>
#include <string_view>
#include <utility>

#include "base/status_macros.h"
#include "base/text.h"
#include "bench/client.h"
#include "bench/socket.h"

namespace tensord::bench {
namespace {

// Reads answers with a Content-Length, which is what servers give to a benchmark.
class RestClient final : public Client {
 public:
  RestClient(loop::EventLoop& loop, base::UniqueFd fd, const Target& target)
      : loop_(loop),
        request_(base::Cat("POST ", target.path, " HTTP/1.1\r\nHost: ", target.host, ":",
                           target.port, "\r\nContent-Type: application/json\r\nContent-Length: ",
                           target.body.size(), "\r\n\r\n", target.body)),
        socket_(
            loop, std::move(fd), [this](std::string_view bytes) { OnBytes(bytes); },
            [this] { FailAll("the server closed the connection"); }) {}

  void Send(ReplyDone done) override {
    if (!socket_.open()) {
      loop_.Defer([done = std::move(done)]() mutable {
        done({.ok = false, .reason = "the connection is closed", .bytes = 0});
      });
      return;
    }
    waiting_.push_back(std::move(done));
    if (waiting_.size() == 1) SendNext();
  }

 private:
  void SendNext() {
    socket_.out() += request_;
    socket_.Flush();
  }

  void OnBytes(std::string_view bytes) {
    in_ += bytes;
    const size_t head_end = in_.find("\r\n\r\n");
    if (head_end == std::string::npos) return;
    const std::string_view head = std::string_view(in_).substr(0, head_end + 2);
    const uint64_t body_bytes = ContentLength(head);
    if (in_.size() < head_end + 4 + body_bytes || waiting_.empty()) return;
    Reply reply{.ok = head.substr(0, 12) == "HTTP/1.1 200", .reason = {}, .bytes = body_bytes};
    if (!reply.ok) {
      reply.reason = base::Cat(head.substr(0, head.find("\r\n")), ": ", in_.substr(head_end + 4));
    }
    in_.clear();
    ReplyDone done = std::move(waiting_.front());
    waiting_.pop_front();
    if (!waiting_.empty()) SendNext();
    done(std::move(reply));
  }

  // 0 when there is none.
  static uint64_t ContentLength(std::string_view head) {
    for (const std::string_view key : {"\r\ncontent-length: ", "\r\nContent-Length: "}) {
      const size_t at = head.find(key);
      if (at == std::string_view::npos) continue;
      uint64_t value = 0;
      std::from_chars(head.data() + at + key.size(), head.data() + head.size(), value);
      return value;
    }
    return 0;
  }

  void FailAll(std::string_view reason) {
    auto waiting = std::exchange(waiting_, {});
    for (ReplyDone& done : waiting) {
      done({.ok = false, .reason = std::string(reason), .bytes = 0});
    }
  }

  loop::EventLoop& loop_;
  const std::string request_;
  std::string in_;
  std::deque<ReplyDone> waiting_;
  Socket socket_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> ConnectRest(loop::EventLoop& loop, const Target& target) {
  ASSIGN_OR_RETURN(base::UniqueFd fd, Socket::Connect(target.host, target.port));
  return std::make_unique<RestClient>(loop, std::move(fd), target);
}

}  // namespace tensord::bench
