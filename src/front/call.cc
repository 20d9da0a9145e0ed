// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/call.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tensord::front {
namespace {

constexpr size_t kUsualHeaders = 12;

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

Call::Call(loop::EventLoop* loop, AnswerTarget* target, base::ByteBudget* budget)
    : loop_(loop), target_(target), text_(budget), body_(budget), answer_held_(budget) {
  head_.headers.reserve(kUsualHeaders);
  head_.arrived = loop->Now();
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
  body_.Clear();
  ReplaceAnswer(std::move(answer));
  target_->OnAnswer(this);
}

void Call::ReplaceAnswer(Answer answer) {
  answer_held_.Clear();
  answer_ = std::move(answer);
  CleanHeaders(&answer_.headers);
  CleanHeaders(&answer_.trailers);
}

void Call::OnCancel(absl::AnyInvocable<void()> cancelled) {
  if (state_ == State::kAbandoned) return cancelled();
  if (state_ == State::kOpen) cancelled_ = std::move(cancelled);
}

void Call::Abandon() {
  const bool cancel = state_ == State::kOpen;
  state_ = State::kAbandoned;
  target_ = nullptr;
  if (cancel && cancelled_) std::exchange(cancelled_, nullptr)();
}

}  // namespace tensord::front
