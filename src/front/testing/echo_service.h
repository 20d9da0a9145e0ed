// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "front/exchange.h"

namespace tensord::front {

// A service for tests of the connections below it.
//
// gRPC, /echo.Echo/<method>: Call echoes the message; Fail answers INVALID_ARGUMENT with the
// message as text; Big answers as many bytes as the message says in decimal; Hang answers only when
// the deadline passes (DEADLINE_EXCEEDED); Keep never answers and is kept, even when cancelled.
// HTTP: /stats answers the counts as JSON; /big/N answers N bytes; /early answers 403 before the
// body; /hang never answers; all else answers "METHOD TARGET SIZE UNDECODABLE\n" and the body.
//
// Threads: one loop.
class EchoService final : public Service {
 public:
  struct Counts {
    uint64_t heads = 0;
    uint64_t begun_bytes = 0;  // As announced to OnBodyBegin.
    uint64_t requests = 0;
    uint64_t refused = 0;
    uint64_t cancelled = 0;
  };
  // How a request ended: a copy of what OnDone heard.
  struct End {
    absl::StatusCode code;
    int http_status;
    bool delivered;
    uint64_t body_bytes;
    uint64_t answer_bytes;
    absl::Duration total;
  };

  void OnHead(Exchange& exchange) override;
  // Refuses a large message that begins with "refuse".
  void OnBodyBegin(Exchange& exchange, std::span<const std::byte> begin, uint64_t bytes) override;
  void OnRequest(std::shared_ptr<Exchange> exchange) override;
  void OnMessage(std::shared_ptr<Exchange> exchange) override;
  void OnMessagesEnd(std::shared_ptr<Exchange> exchange) override;
  void OnRefused(const RequestHead& head, int http_status, std::string_view why) override;
  void OnDone(const Ending& ending) override;

  const Counts& counts() const { return counts_; }
  const std::string& last_refusal() const { return last_refusal_; }
  std::vector<std::shared_ptr<Exchange>> kept;
  std::vector<End> ends;  // The last kEndsKept at most.
  // More members for /stats: `,"name":1`.
  std::function<std::string()> more_stats = [] { return std::string(); };

 private:
  static constexpr size_t kEndsKept = 1000;

  void AnswerGrpc(std::shared_ptr<Exchange> exchange);
  void AnswerHttp(std::shared_ptr<Exchange> exchange);
  void Hang(std::shared_ptr<Exchange> exchange, absl::Time deadline);
  std::string Stats() const;

  Counts counts_;
  std::string last_refusal_;
};

}  // namespace tensord::front
