// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/http1/session.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/text.h"
#include "front/call.h"
#include "front/http1/answer_text.h"
#include "front/http1/chunked.h"
#include "front/http1/head.h"
#include "front/inflater.h"
#include "front/refusal.h"

namespace tensord::front {
namespace {

std::string_view Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

class Http1Session final : public Session, public AnswerTarget {
 public:
  explicit Http1Session(Link* link) : link_(link), since_(Now()), in_held_(link->edge().budget) {}

  std::span<std::byte> ReadInto() override;
  void OnBytes(std::span<const std::byte> bytes) override;
  void OnEndOfInput() override;
  void Turn(OutQueue* out, size_t room) override;
  void OnGone() override;
  void StartDrain() override { draining_ = true; }
  void OnTick(absl::Time now) override;
  size_t open_calls() const override { return call_ != nullptr && !call_->answered() ? 1 : 0; }
  bool idle() const override { return state_ == State::kHead; }

  void OnAnswer(Call* /*call*/) override { link_->WantTurn(); }

 private:
  enum class State : uint8_t {
    kHead,       // Waits for a request, or for the rest of its head.
    kBody,       // Reads its body, unless it is answered already.
    kInflating,  // Undoes the body's compression, a slice a turn.
    kAnswering,  // The service has it, or its answer waits for a turn.
    kDiscard,    // The answer is out; the rest of the body is read and dropped.
    kDone,       // Nothing more is read: the connection closes.
  };

  const Edge& edge() const { return link_->edge(); }
  absl::Time Now() const { return edge().loop->Now(); }
  void Enter(State state) {
    state_ = state;
    since_ = Now();
  }
  std::string_view unread() const { return std::string_view(in_).substr(in_at_); }

  // Works on unread() as far as the state allows. The Take functions are its steps: false when more
  // bytes or another turn are needed.
  void Proceed();
  bool Step();
  bool TakeHead();
  bool TakeSized();
  bool TakeChunks();
  void Compact();

  void NewCall();
  void BeginRequest(std::string_view text);
  void BeginBody();
  bool AddToBody(std::string_view data);
  void EndBody();
  void InflateSlice();
  void Deliver();
  void Refuse(Refusal refusal);
  void WriteAnswer(OutQueue* out);
  bool CanDiscardBody() const;
  void EndRequest(bool close);
  void Finish();

  Link* const link_;

  State state_ = State::kHead;
  absl::Time since_;  // Of the state, or of the head's first or the body's last byte.
  std::string in_;    // Read and not yet understood; in_at_ bytes of it are done with.
  size_t in_at_ = 0;
  base::BytesHeld in_held_;
  size_t scanned_ = 0;  // Of unread(), for the end of a head.
  int empty_lines_ = 0;
  int requests_this_turn_ = 0;
  bool first_request_ = true;
  bool draining_ = false;
  bool input_ended_ = false;
  bool proceeding_ = false;

  // Of the request under way.
  std::shared_ptr<Call> call_;
  Http1Framing framing_;
  bool body_ended_ = false;
  bool continue_wanted_ = false;
  bool continue_sent_ = false;
  uint64_t body_left_ = 0;  // Without chunks.
  ChunkedDecoder chunks_;
  std::optional<BodyBuffer> inflated_;
  std::unique_ptr<Inflater> inflater_;
};

std::span<std::byte> Http1Session::ReadInto() {
  // Only for a body whose length is known, with nothing else read before it.
  if (state_ != State::kBody || call_->answered() || framing_.chunked || !unread().empty()) {
    return {};
  }
  // The budget is charged for what is offered here: no more than has come, or a first step.
  BodyBuffer* const body = call_->body_buffer();
  const uint64_t most = std::max(body->size(), limits::kReadAheadBytes);
  return body->Writable(static_cast<size_t>(std::min(body_left_, most)));
}

void Http1Session::OnBytes(std::span<const std::byte> bytes) {
  if (state_ == State::kDone) return;
  const std::span<std::byte> into = ReadInto();
  if (!into.empty() && bytes.data() == into.data()) {
    call_->body_buffer()->Commit(bytes.size());
    body_left_ -= bytes.size();
    since_ = Now();
  } else {
    const bool first = state_ == State::kHead && unread().empty();
    if (first || state_ == State::kBody || state_ == State::kDiscard) since_ = Now();
    in_.append(Text(bytes));
  }
  Proceed();
}

void Http1Session::OnEndOfInput() {
  input_ended_ = true;
  if (state_ == State::kDiscard) return Finish();
  if (state_ == State::kBody && !call_->answered()) {
    return Refuse({.http_status = 400, .why = "the body ended before the length it was given"});
  }
  Proceed();
}

void Http1Session::Proceed() {
  if (std::exchange(proceeding_, true)) return;
  while (Step()) {
  }
  proceeding_ = false;
  Compact();
  // A client that sends on while its request runs fills this much, then the kernel's buffers.
  link_->SetReading(unread().size() < limits::kReadAheadBytes + limits::kHeaderBytesMax);
  // What little is kept between two reads of a usual client is part of a connection's own cost.
  if (in_.capacity() <= limits::kUnchargedBytes) return in_held_.Clear();
  if (!in_held_.GrowTo(in_.capacity())) link_->Abort();
}

bool Http1Session::Step() {
  switch (state_) {
    case State::kHead:
      return TakeHead();
    case State::kBody:
      if (call_->answered()) return false;
      [[fallthrough]];
    case State::kDiscard:
      return framing_.chunked ? TakeChunks() : TakeSized();
    case State::kInflating:
    case State::kAnswering:
    case State::kDone:
      break;
  }
  return false;
}

void Http1Session::Compact() {
  if (in_at_ == in_.size()) {
    in_.clear();
    in_at_ = 0;
    if (in_.capacity() > limits::kUnchargedBytes) in_.shrink_to_fit();
  } else if (in_at_ > limits::kReadAheadBytes) {
    in_.erase(0, in_at_);
    in_at_ = 0;
  }
}

bool Http1Session::TakeHead() {
  while (empty_lines_ < limits::kEmptyLinesMax && unread().starts_with("\r\n")) {
    ++empty_lines_;
    scanned_ = 0;
    in_at_ += 2;
  }
  if (requests_this_turn_ >= limits::kPipelinedPerTurn && !unread().empty()) {
    link_->WantTurn();
    return false;
  }
  const HeadScan scan = ScanHead(unread(), scanned_);
  scanned_ = unread().size();
  if (scan.kind == HeadScan::kComplete && scan.bytes <= limits::kHeaderBytesMax) {
    BeginRequest(unread().substr(0, scan.bytes));
    return true;
  }
  if (scan.kind == HeadScan::kBad) {
    NewCall();
    Refuse({.http_status = 400, .why = "a line of the request's head ends in LF without CR"});
  } else if (unread().size() > limits::kHeaderBytesMax) {
    NewCall();
    const bool first_line = unread().find("\r\n") > limits::kHeaderBytesMax;
    Refuse({.http_status = first_line ? 414 : 431,
            .code = absl::StatusCode::kResourceExhausted,
            .why = base::Cat("the request's head is longer than the limit of ",
                             limits::kHeaderBytesMax, " bytes")});
  } else if (input_ended_) {
    Finish();
  }
  return false;
}

void Http1Session::NewCall() {
  call_ = std::make_shared<Call>(edge(), this);
  call_->mutable_head()->arrived = since_;
  call_->mutable_head()->peer = link_->peer();
  call_->mutable_head()->grpc_port = edge().grpc;
  call_->mutable_head()->door = edge().door;
  call_->mutable_head()->peer_names = link_->peer_names();
  framing_ = {.keep_alive = false};
  body_ended_ = false;
}

void Http1Session::BeginRequest(std::string_view text) {
  ++requests_this_turn_;
  NewCall();
  auto parsed = ParseHead(text, call_.get());
  in_at_ += text.size();
  scanned_ = 0;
  empty_lines_ = 0;
  if (auto* refusal = std::get_if<Refusal>(&parsed)) return Refuse(std::move(*refusal));
  framing_ = std::get<Http1Framing>(parsed);
  if (framing_.content_length > edge().body_bytes_max) {
    return Refuse({.http_status = 413,
                   .code = absl::StatusCode::kResourceExhausted,
                   .why = base::Cat("the request's body has ", framing_.content_length,
                                    " bytes; the limit is ", edge().body_bytes_max)});
  }
  BeginBody();
}

void Http1Session::BeginBody() {
  Enter(State::kBody);
  body_left_ = framing_.content_length;
  chunks_ = {};
  continue_sent_ = false;
  edge().service->OnHead(*call_);
  const bool comes = framing_.chunked || body_left_ > 0;
  continue_wanted_ = comes && framing_.expects_continue && !call_->answered() && unread().empty();
  if (continue_wanted_) link_->WantTurn();
}

bool Http1Session::TakeSized() {
  const std::string_view data =
      unread().substr(0, static_cast<size_t>(std::min<uint64_t>(body_left_, unread().size())));
  in_at_ += data.size();
  body_left_ -= data.size();
  if (!AddToBody(data)) return false;
  if (body_left_ == 0) {
    EndBody();
    return true;
  }
  // Room for what comes next, so that it is read right into its place.
  if (state_ == State::kDiscard || !call_->body_buffer()->full()) return false;
  if (!call_->body_buffer()->MakeRoom(framing_.content_length)) Refuse(OutOfMemoryRefusal());
  return false;
}

bool Http1Session::TakeChunks() {
  while (true) {
    const ChunkedDecoder::Step step = chunks_.Next(unread());
    in_at_ += step.taken;
    switch (step.kind) {
      case ChunkedDecoder::Kind::kNeedMore:
        return false;
      case ChunkedDecoder::Kind::kData:
        if (!AddToBody(step.data)) return false;
        break;
      case ChunkedDecoder::Kind::kEnd:
        EndBody();
        return true;
      case ChunkedDecoder::Kind::kBad:
        Refuse({.http_status = 400, .why = "the body is not properly chunked"});
        return false;
    }
  }
}

// False when the request was refused.
bool Http1Session::AddToBody(std::string_view data) {
  if (state_ == State::kDiscard) return true;
  BodyBuffer* const body = call_->body_buffer();
  if (body->size() + data.size() > edge().body_bytes_max) {
    Refuse({.http_status = 413,
            .code = absl::StatusCode::kResourceExhausted,
            .why = base::Cat("the request's body has more than ", edge().body_bytes_max,
                             " bytes, the limit")});
    return false;
  }
  if (body->Append(Bytes(data), framing_.content_length)) return true;
  Refuse(OutOfMemoryRefusal());
  return false;
}

void Http1Session::EndBody() {
  body_ended_ = true;
  continue_wanted_ = false;
  if (state_ == State::kDiscard) return Enter(State::kHead);
  if (!framing_.packed.has_value() || call_->body().empty()) return Deliver();
  inflated_.emplace(edge().ForInflated());
  inflater_ = std::make_unique<Inflater>(*framing_.packed, call_->body(), edge().inflated_bytes_max,
                                         &*inflated_);
  Enter(State::kInflating);
  link_->WantTurn();
}

void Http1Session::InflateSlice() {
  const Inflater::Result result = inflater_->Step();
  if (result == Inflater::Result::kMore) return link_->WantTurn();
  inflater_.reset();
  *call_->body_buffer() = *std::exchange(inflated_, std::nullopt);
  switch (result) {
    case Inflater::Result::kTooLarge:
      return Refuse({.http_status = 413,
                     .code = absl::StatusCode::kResourceExhausted,
                     .why = base::Cat("the body inflates to more than ", edge().inflated_bytes_max,
                                      " bytes, the limit")});
    case Inflater::Result::kNoMemory:
      return Refuse(OutOfMemoryRefusal());
    case Inflater::Result::kCorrupt:
      call_->body_buffer()->Clear();
      call_->set_undecodable();
      break;
    case Inflater::Result::kDone:
    case Inflater::Result::kMore:
      break;
  }
  Deliver();
}

void Http1Session::Deliver() {
  Enter(State::kAnswering);
  call_->Deliver();
}

// Answers in the service's place, and closes: where the next request starts may not be known.
void Http1Session::Refuse(Refusal refusal) {
  framing_.keep_alive = false;
  Enter(State::kAnswering);
  edge().service->OnRefused(call_->head(), refusal.http_status, refusal.why);
  call_->Send(RefusalAnswer(call_->head(), refusal, edge().cors));
}

void Http1Session::Turn(OutQueue* out, size_t room) {
  requests_this_turn_ = 0;
  if (state_ == State::kHead) Proceed();  // What the last turn had no time for.
  while (out->bytes() < room) {
    if (std::exchange(continue_wanted_, false)) {
      continue_sent_ = true;
      out->Append("HTTP/1.1 100 Continue\r\n\r\n");
    }
    if (state_ == State::kInflating) InflateSlice();
    if (call_ == nullptr || !call_->answered()) break;
    WriteAnswer(out);
    Proceed();
  }
  if (call_ != nullptr && call_->answered()) link_->WantTurn();
  if (state_ == State::kDone) link_->CloseWhenWritten(Link::Closing::kPolite);
}

void Http1Session::WriteAnswer(OutQueue* out) {
  if (!call_->HoldAnswerBytes())
    call_->ReplaceAnswer(RefusalAnswer(call_->head(), OutOfMemoryRefusal(), edge().cors));
  const Answer& answer = call_->answer();
  const bool close = !framing_.keep_alive || draining_ || (!body_ended_ && !CanDiscardBody());
  out->Append(Http1AnswerHead(
      answer, {.http_1_0 = framing_.http_1_0, .close = close, .date = base::WallTime()}));
  if (call_->head().method != "HEAD" && answer.status != 204 && answer.status != 304) {
    out->Append(answer.prefix);
    out->AppendShared(answer.body, call_);
  }
  EndRequest(close);
}

// Whether to go on after an answer that came before the body's end.
bool Http1Session::CanDiscardBody() const {
  // A client that waits for "100 Continue" may now send the body or not: nobody can tell.
  if (framing_.expects_continue && !continue_sent_) return false;
  return !framing_.chunked && body_left_ <= limits::kDiscardBytesMax && !input_ended_;
}

void Http1Session::EndRequest(bool close) {
  link_->Leaves(call_);
  std::exchange(call_, nullptr)->Abandon();
  first_request_ = false;
  continue_wanted_ = false;
  if (close) return Enter(State::kDone);
  Enter(body_ended_ ? State::kHead : State::kDiscard);
}

void Http1Session::Finish() {
  Enter(State::kDone);
  link_->WantTurn();
}

void Http1Session::OnGone() {
  state_ = State::kDone;
  inflater_.reset();
  inflated_.reset();
  if (call_ != nullptr) std::exchange(call_, nullptr)->Abandon();
}

void Http1Session::OnTick(absl::Time now) {
  const absl::Duration waited = now - since_;
  switch (state_) {
    case State::kHead: {
      if (!unread().empty()) {
        if (waited <= limits::kHeaderWaitMax) break;
        NewCall();
        Refuse({.http_status = 408,
                .code = absl::StatusCode::kDeadlineExceeded,
                .why = "the request's head did not arrive in time"});
        break;
      }
      absl::Duration patience =
          first_request_ ? limits::kHeaderWaitMax : limits::kIdleConnectionMax;
      // A client that is not quiet learns from its next answer that this connection closes.
      if (draining_) patience = limits::kDrainIdle;
      if (waited > patience) Finish();
      break;
    }
    case State::kBody:
      if (call_->answered()) break;
      if (waited <= limits::kBodyStallMax && now - call_->head().arrived <= limits::kBodyWaitMax) {
        break;
      }
      Refuse({.http_status = 408,
              .code = absl::StatusCode::kDeadlineExceeded,
              .why = "the request's body did not arrive in time"});
      break;
    case State::kDiscard:
      if (waited > limits::kBodyStallMax) Finish();
      break;
    case State::kInflating:
    case State::kAnswering:
    case State::kDone:
      break;
  }
}

}  // namespace

std::unique_ptr<Session> MakeHttp1Session(Link* link) {
  return std::make_unique<Http1Session>(link);
}

}  // namespace tensord::front
