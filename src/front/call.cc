// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/call.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "front/grpc.h"

namespace tensord::front {
namespace {

constexpr size_t kUsualHeaders = 12;
constexpr absl::Duration kDeadlineSlack = absl::Milliseconds(10);

// A line break in a value would let its writer add headers of its own.
void CleanHeaders(std::vector<Header>* headers) {
  for (auto& [name, value] : *headers) {
    for (char& c : value) {
      if (c == '\r' || c == '\n' || c == '\0') c = ' ';
    }
  }
}

}  // namespace

std::optional<std::string_view> TextArena::Keep(std::string_view text) {
  if (text.empty()) return text;
  if (text.size() > left_) {
    const size_t bytes = std::max(kChunkBytes, text.size());
    if (!held_.GrowTo(held_.bytes() + bytes)) return std::nullopt;
    // Not zeroed: it is written right below.
    chunks_.push_back(std::make_unique_for_overwrite<char[]>(bytes));
    free_ = chunks_.back().get();
    left_ = bytes;
  }
  char* const at = free_;
  std::memcpy(at, text.data(), text.size());
  free_ += text.size();
  left_ -= text.size();
  return std::string_view(at, text.size());
}

Call::Call(const Edge& edge, AnswerTarget* target)
    : loop_(edge.loop),
      service_(edge.service),
      target_(target),
      text_(edge.budget),
      body_(edge.budget),
      answer_held_(edge.budget) {
  head_.headers.reserve(kUsualHeaders);
  head_.arrived = loop_->Now();
}

void Call::Deliver() {
  trace_.read = loop_->ClockNow();
  trace_.body_bytes = body_.size();
  service_->OnRequest(shared_from_this());
}

bool Call::AddHeader(std::string_view name, std::string_view value) {
  const auto kept_name = text_.Keep(name);
  const auto kept_value = text_.Keep(value);
  if (!kept_name.has_value() || !kept_value.has_value()) return false;
  head_.headers.emplace_back(*kept_name, *kept_value);
  return true;
}

void Call::Send(Answer answer) {
  if (state_ != State::kOpen) return;
  state_ = State::kAnswered;
  cancelled_ = nullptr;
  sent_ = true;
  if (trace_.answered == absl::InfinitePast()) trace_.answered = loop_->ClockNow();
  trace_.body_bytes = std::max<uint64_t>(trace_.body_bytes, body_.size());
  body_.Clear();
  ReplaceAnswer(std::move(answer));
  target_->OnAnswer(this);
}

void Call::Write(std::string message) {
  if (state_ == State::kOpen) target_->OnWrite(this, std::move(message));
}

void Call::ReplaceAnswer(Answer answer) {
  answer_held_.Clear();
  answer_ = std::move(answer);
  CleanHeaders(&answer_.headers);
  CleanHeaders(&answer_.trailers);
}

void Call::CompressAnswer(std::string message) {
  answer_.prefix = GrpcPrefix(static_cast<uint32_t>(message.size()));
  answer_.prefix[0] = 1;
  answer_.body = std::move(message);
  answer_held_.Clear();
}

void Call::OnCancel(absl::AnyInvocable<void()> cancelled) {
  if (state_ == State::kAbandoned) return cancelled();
  if (state_ == State::kOpen) cancelled_ = std::move(cancelled);
}

void Call::Abandon() {
  const bool cancel = state_ == State::kOpen;
  state_ = State::kAbandoned;
  target_ = nullptr;
  if (!leaving_) Finish(loop_->ClockNow(), /*delivered=*/false);
  if (cancel && cancelled_) std::exchange(cancelled_, nullptr)();
}

// A client that gives up at its own deadline is a moment ahead of us: it began to count earlier.
bool Call::CancelledAtDeadline(absl::Time at) const {
  if (trace_.deadline == absl::InfiniteFuture()) return false;
  return at >= trace_.deadline - std::max(kDeadlineSlack, (trace_.deadline - head_.arrived) / 20);
}

void Call::Finish(absl::Time at, bool delivered) {
  if (std::exchange(finished_, true)) return;
  Ending ending{.head = head_,
                .trace = trace_,
                .code = answer_.code,
                .http_status = answer_.status,
                .answer_bytes = AnswerBytes(),
                .at = at,
                .delivered = delivered};
  if (!sent_) {
    const bool late = CancelledAtDeadline(at);
    ending.code = late ? absl::StatusCode::kDeadlineExceeded : absl::StatusCode::kCancelled;
    ending.http_status = 0;
  }
  service_->OnDone(ending);
}

}  // namespace tensord::front
