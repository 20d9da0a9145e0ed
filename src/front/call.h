// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "front/body_buffer.h"
#include "front/exchange.h"
#include "front/link.h"

namespace tensord::front {

class Call;

// Where a call's answer goes: the session that reads and writes it.
class AnswerTarget {
 public:
  virtual ~AnswerTarget() = default;
  // The answer is in `call`. Runs inside Exchange::Send, which may run inside the session.
  virtual void OnAnswer(Call* call) = 0;
  // A stream's answer goes on. Runs inside Exchange::Write.
  virtual void OnWrite(Call* /*call*/, std::string /*message*/) {}
};

// Keeps the text of a request's headers in one place. The first bytes cost no allocation and no
// budget.
class TextArena {
 public:
  explicit TextArena(base::ByteBudget* budget) : held_(budget) {}
  // None when the budget is used up. Lifetime of the result: the arena's.
  std::optional<std::string_view> Keep(std::string_view text);

 private:
  static constexpr size_t kInlineBytes = 320;  // A usual gRPC call's headers.
  static constexpr size_t kChunkBytes = 4096;

  std::array<char, kInlineBytes> inline_;
  char* free_ = inline_.data();
  size_t left_ = kInlineBytes;
  std::vector<std::unique_ptr<char[]>> chunks_;
  base::BytesHeld held_;
};

// The one Exchange of both protocols: a request's memory, then its answer's.
//
// Threads: the connection's loop. Lifetime: the session and whoever answers share it; the session
// calls Abandon before it goes itself.
class Call : public Exchange, public std::enable_shared_from_this<Call> {
 public:
  // Lifetime: what `edge` points to outlives the session, and so the call's last use of it.
  Call(const Edge& edge, AnswerTarget* target);

  // Exchange, for the service.
  loop::EventLoop& loop() override { return *loop_; }
  const RequestHead& head() const override { return head_; }
  std::span<const std::byte> body() const override { return body_.bytes(); }
  bool body_undecodable() const override { return undecodable_; }
  Trace& trace() override { return trace_; }
  void Send(Answer answer) override;
  void OnCancel(absl::AnyInvocable<void()> cancelled) override;
  void ReceiveInto(std::span<std::byte> memory, std::shared_ptr<const void> owner) override {
    body_.ReceiveInto(memory, std::move(owner));
  }
  void BeginStream() override { streaming_ = true; }
  void Write(std::string message) override;

  // For the session.
  RequestHead* mutable_head() { return &head_; }
  // False when there is no memory for it.
  [[nodiscard]] bool AddHeader(std::string_view name, std::string_view value);
  BodyBuffer* body_buffer() { return &body_; }
  void set_undecodable() { undecodable_ = true; }
  // The body is complete: the service gets the call.
  void Deliver();
  bool streaming() const { return streaming_; }
  bool answered() const { return state_ == State::kAnswered; }
  const Answer& answer() const { return answer_; }
  // Draws the answer's memory from the budget while it waits to be written; false when it cannot.
  [[nodiscard]] bool HoldAnswerBytes() { return answer_held_.GrowTo(AnswerBytes()); }
  size_t AnswerBytes() const { return answer_.prefix.size() + answer_.body.size(); }
  // Puts the compressed message in the answer's place.
  void CompressAnswer(std::string message);
  // Puts another answer in place of the one that cannot be sent.
  void ReplaceAnswer(Answer answer);
  // The client has gone, or all is queued for it. Cancels if there was no answer.
  void Abandon();
  // All of the answer is queued, and its Finish comes when it is written: Abandon does not end it.
  void set_leaving() { leaving_ = true; }
  // Tells the service, once, how the request ended.
  void Finish(absl::Time at, bool delivered);

 private:
  enum class State : uint8_t { kOpen, kAnswered, kAbandoned };

  bool CancelledAtDeadline(absl::Time at) const;

  loop::EventLoop* const loop_;
  Service* const service_;
  AnswerTarget* target_;  // Null once abandoned.
  State state_ = State::kOpen;
  bool undecodable_ = false;
  bool leaving_ = false;
  bool sent_ = false;
  bool finished_ = false;
  bool streaming_ = false;
  RequestHead head_;
  Trace trace_;
  TextArena text_;
  BodyBuffer body_;
  Answer answer_;
  base::BytesHeld answer_held_;
  absl::AnyInvocable<void()> cancelled_;
};

}  // namespace tensord::front
