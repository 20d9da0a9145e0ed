// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/testing/echo_service.h"

#include <charconv>
#include <utility>

#include "base/text.h"
#include "front/grpc.h"

namespace tensord::front {
namespace {

std::string ToString(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

size_t ToNumber(std::string_view text) {
  size_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Answer TextAnswer(int status, std::string text) {
  Answer answer{.status = status};
  answer.headers.emplace_back("content-type", "text/plain");
  answer.body = std::move(text);
  return answer;
}

}  // namespace

void EchoService::OnHead(Exchange& exchange) {
  const RequestHead& head = exchange.head();
  if (head.target == "/stats") return;  // Whoever looks is not to be seen.
  ++counts_.heads;
  if (head.target == "/early") return exchange.Send(TextAnswer(403, "refused at the head\n"));
  if (!IsGrpc(head)) return;
  const auto parsed = ParseGrpcHead(head);
  if (!parsed.ok()) return exchange.Send(MakeGrpcAnswer(parsed.status()));
  exchange.trace().deadline = parsed->deadline;
  if (parsed->method == "Chat") exchange.BeginStream();
}

// Echoes each message until the client ends; "end" ends with an error, "many" answers a lot.
void EchoService::OnMessage(std::shared_ptr<Exchange> exchange) {
  ++counts_.requests;
  const auto message = ReadGrpcMessage(exchange->body());
  if (!message.ok()) return exchange->Send(MakeGrpcEnd(message.status()));
  const std::string text = ToString(*message);
  if (text == "end") return exchange->Send(MakeGrpcEnd(absl::AbortedError("as you wish")));
  if (text == "keep") kept.push_back(exchange);
  if (text == "many") {
    for (int i = 0; i < 1000; ++i) exchange->Write(std::string(100'000, 'x'));
  }
  exchange->OnCancel([this] { ++counts_.cancelled; });
  exchange->Write(text);
}

void EchoService::OnMessagesEnd(std::shared_ptr<Exchange> exchange) {
  exchange->Send(MakeGrpcEnd(absl::OkStatus()));
}

void EchoService::OnBodyBegin(Exchange& exchange, std::span<const std::byte> begin,
                              uint64_t bytes) {
  counts_.begun_bytes += bytes - kGrpcPrefixBytes;
  const std::string text = ToString(begin.subspan(kGrpcPrefixBytes));
  if (!text.starts_with("refuse")) return;
  exchange.Send(MakeGrpcAnswer(absl::ResourceExhaustedError("refused by its beginning")));
}

void EchoService::OnRequest(std::shared_ptr<Exchange> exchange) {
  if (exchange->head().target != "/stats") ++counts_.requests;
  IsGrpc(exchange->head()) ? AnswerGrpc(std::move(exchange)) : AnswerHttp(std::move(exchange));
}

void EchoService::OnRefused(const RequestHead&, int, std::string_view why) {
  ++counts_.refused;
  last_refusal_ = why;
}

void EchoService::OnDone(const Ending& ending) {
  if (ends.size() >= kEndsKept) ends.erase(ends.begin());
  ends.push_back({.code = ending.code,
                  .http_status = ending.http_status,
                  .delivered = ending.delivered,
                  .body_bytes = ending.trace.body_bytes,
                  .answer_bytes = ending.answer_bytes,
                  .total = ending.at - ending.head.arrived});
}

void EchoService::AnswerGrpc(std::shared_ptr<Exchange> exchange) {
  const auto head = ParseGrpcHead(exchange->head());
  const auto message = ReadGrpcMessage(exchange->body());
  if (!message.ok()) return exchange->Send(MakeGrpcAnswer(message.status()));
  std::string text = ToString(*message);
  if (head->method == "Call") {
    exchange->Send(MakeGrpcAnswer(absl::OkStatus(), std::move(text)));
  } else if (head->method == "Big") {
    exchange->Send(MakeGrpcAnswer(absl::OkStatus(), std::string(ToNumber(text), 'x')));
  } else if (head->method == "Fail") {
    exchange->Send(MakeGrpcAnswer(absl::InvalidArgumentError(text.c_str())));
  } else if (head->method == "Keep") {
    kept.push_back(std::move(exchange));
  } else if (head->method == "Hang") {
    Hang(std::move(exchange), head->deadline);
  } else {
    exchange->Send(MakeGrpcAnswer(absl::UnimplementedError("unknown method")));
  }
}

void EchoService::AnswerHttp(std::shared_ptr<Exchange> exchange) {
  const RequestHead& head = exchange->head();
  const std::string_view target = head.target;
  if (target == "/hang") return Hang(std::move(exchange), absl::InfiniteFuture());
  if (target == "/stats") return exchange->Send(TextAnswer(200, Stats()));
  if (target.starts_with("/big/")) {
    return exchange->Send(TextAnswer(200, std::string(ToNumber(target.substr(5)), 'x')));
  }
  std::string text = base::Cat(std::string_view(head.method), " ", target, " ",
                               exchange->body().size(), " ", exchange->body_undecodable(), "\n");
  text += ToString(exchange->body());
  exchange->Send(TextAnswer(200, std::move(text)));
}

void EchoService::Hang(std::shared_ptr<Exchange> exchange, absl::Time deadline) {
  Exchange* const at = exchange.get();
  const auto timer = std::make_shared<loop::TimerId>(0);
  loop::EventLoop* const loop = &at->loop();
  if (deadline != absl::InfiniteFuture()) {
    *timer = loop->At(deadline, [exchange] {
      exchange->Send(MakeGrpcAnswer(absl::DeadlineExceededError("the deadline passed")));
    });
  }
  // Keeps itself alive until it is cancelled or answered.
  at->OnCancel([this, loop, timer, exchange = std::move(exchange)] {
    loop->Cancel(*timer);
    ++counts_.cancelled;
  });
}

std::string EchoService::Stats() const {
  return base::Cat("{\"heads\":", counts_.heads, ",\"requests\":", counts_.requests,
                   ",\"refused\":", counts_.refused, ",\"cancelled\":", counts_.cancelled,
                   more_stats(), "}");
}

}  // namespace tensord::front
