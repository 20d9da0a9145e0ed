// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/connection.h"

#include <sys/epoll.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/limits.h"
#include "front/call.h"
#include "front/http1/session.h"
#include "front/http2/session.h"

namespace tensord::front {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
// Whether the bytes may begin an HTTP/1 request: as far as its first line has come.
bool MayBeHttp1(std::string_view text) {
  const size_t end = text.find('\n');
  return end == std::string_view::npos ||
         text.substr(0, end).find(" HTTP/") != std::string_view::npos;
}

// So much of the preface tells HTTP/2 from any HTTP/1.1 request.
constexpr size_t kPrefaceTells = 16;

constexpr std::string_view kNotHttp1 =
    "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n"
    "content-length: 95\r\n\r\n"
    "This port speaks gRPC (HTTP/2) only; send REST requests to the port of "
    "--rest_api_port instead.";
constexpr std::string_view kNotTls =
    "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n"
    "content-length: 59\r\n\r\n"
    "This port speaks TLS; send the request by https:// instead.";
static_assert(kNotTls.size() - kNotTls.find("\r\n\r\n") - 4 == 59);
static_assert(kNotHttp1.size() - kNotHttp1.find("\r\n\r\n") - 4 == 95);

std::string_view Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Connection::Connection(ConnectionOwner* owner, std::unique_ptr<ByteStream> stream, std::string peer)
    : owner_(owner),
      peer_(std::move(peer)),
      stream_(std::move(stream)),
      events_(EPOLLIN),
      last_read_(owner->edge().loop->Now()),
      last_write_(last_read_) {
  watch_ = owner_->edge().loop->Add(stream_->fd(), events_,
                                    [this](uint32_t events) { OnReady(events); });
}

Connection::~Connection() {
  if (state_ != State::kClosed && session_ != nullptr) session_->OnGone();
  FinishLeaving(/*delivered=*/false);
}

bool Connection::idle() const {
  if (state_ == State::kOpen) return backlog_.empty() && session_->idle();
  return state_ != State::kFinishing;
}

void Connection::OnReady(uint32_t events) {
  const bool writable = (events & EPOLLOUT) != 0;
  const bool readable = (events & EPOLLIN) != 0;
  if (writable || (readable && write_wants_read_)) WantTurn();
  const bool gone = (events & (EPOLLERR | EPOLLHUP)) != 0;
  if (reading_ && !input_ended_) {
    if (gone || readable || (writable && read_wants_write_)) ReadSome();
  } else if (gone) {
    // Neither direction works any more, and nothing that waits to be read could be answered.
    Abort();
  }
}

void Connection::ReadSome() {
  owner_->OnActivity(this);
  read_wants_write_ = false;
  size_t total = 0;
  while (state_ != State::kClosed && reading_ && !input_ended_) {
    std::span<std::byte> into;
    if (state_ == State::kOpen) into = session_->ReadInto();
    if (into.empty()) into = owner_->read_scratch();
    into = into.first(std::min(into.size(), limits::kReadBytesPerTurn));
    const IoResult result = stream_->Read(into);
    if (result.kind == IoResult::kEnd) return OnEnd();
    if (result.kind == IoResult::kFailed) return Abort();
    if (result.kind == IoResult::kPlainHttp) return RefusePlain();
    if (result.kind != IoResult::kDone) {
      read_wants_write_ = result.kind == IoResult::kWantWrite;
      return UpdateEvents();
    }
    last_read_ = edge().loop->Now();
    TakeBytes(into.first(result.bytes));
    total += result.bytes;
    // A short read has emptied the socket; asking again would cost a system call to learn it.
    const bool enough = result.bytes < into.size() || total >= limits::kReadBytesPerTurn;
    if (enough && !stream_->HasBufferedInput()) return;
  }
}

void Connection::RefusePlain() {
  backlog_.Append(kNotTls);
  state_ = State::kFinishing;
  WantTurn();
}

void Connection::TakeBytes(std::span<const std::byte> bytes) {
  if (state_ == State::kChoosing) return ChooseProtocol(bytes);
  if (state_ == State::kOpen) return session_->OnBytes(bytes);
  lingered_bytes_ += bytes.size();
  if (lingered_bytes_ > limits::kLingerBytesMax) Abort();
}

void Connection::ChooseProtocol(std::span<const std::byte> bytes) {
  first_bytes_.append(Text(bytes));
  const Protocols protocols = owner_->protocols();
  const size_t compared = std::min(first_bytes_.size(), kPrefaceTells);
  const bool preface =
      kPreface.substr(0, compared) == std::string_view(first_bytes_).substr(0, compared);
  if (preface && compared < kPrefaceTells && protocols.http2) return;  // Not enough to tell.
  state_ = State::kOpen;
  peer_names_ = stream_->PeerNames();
  const bool http1 = !preface && MayBeHttp1(first_bytes_);
  if (protocols.http2 && !http1) {
    session_ = MakeHttp2Session(this);  // It also tells what is neither that it is no HTTP/2.
  } else if (protocols.http1) {
    session_ = MakeHttp1Session(this);
  } else {
    backlog_.Append(kNotHttp1);
    state_ = State::kFinishing;
    return WantTurn();
  }
  if (draining_) session_->StartDrain();
  const std::string first = std::exchange(first_bytes_, {});
  session_->OnBytes(std::as_bytes(std::span(first)));
}

void Connection::OnEnd() {
  input_ended_ = true;
  if (state_ == State::kOpen) {
    session_->OnEndOfInput();
    UpdateEvents();
  } else if (state_ == State::kFinishing) {
    UpdateEvents();
  } else {
    Abort();
  }
}

void Connection::RunTurn() {
  turn_wanted = false;
  if (state_ == State::kClosed) return;
  if (!backlog_.empty()) AfterWrite(backlog_.WriteTo(stream_.get()));
  if (backlog_.empty()) FinishLeaving(/*delivered=*/true);
  if (state_ == State::kOpen && backlog_.empty()) {
    OutQueue* const out = owner_->out_scratch();
    session_->Turn(out, limits::kWriteBytesPerTurn);
    // The turn may have ended the connection, and then nothing may be written any more.
    if (state_ != State::kClosed && !out->empty()) {
      const IoResult result = out->WriteTo(stream_.get());
      if (!out->empty()) std::swap(*out, backlog_);
      AfterWrite(result);
    }
    out->Clear();
    if (backlog_.empty()) FinishLeaving(/*delivered=*/true);
  }
  if (state_ == State::kFinishing && backlog_.empty()) StartLinger();
  UpdateEvents();
}

void Connection::AfterWrite(const IoResult& result) {
  if (result.kind == IoResult::kFailed) return Abort();
  if (result.bytes > 0 || (!write_blocked_ && !write_wants_read_)) last_write_ = edge().loop->Now();
  write_blocked_ = result.kind == IoResult::kWantWrite;
  write_wants_read_ = result.kind == IoResult::kWantRead;
}

void Connection::Leaves(std::shared_ptr<Call> call) {
  call->set_leaving();
  leaving_.push_back(std::move(call));
}

// One look at the clock for all answers that one turn wrote.
void Connection::FinishLeaving(bool delivered) {
  if (leaving_.empty()) return;
  const absl::Time now = edge().loop->ClockNow();
  for (const std::shared_ptr<Call>& call : leaving_) call->Finish(now, delivered);
  leaving_.clear();
}

void Connection::StartLinger() {
  stream_->ShutdownWrite();
  if (input_ended_ || closing_ == Closing::kAbrupt) return Abort();
  state_ = State::kLingering;
  reading_ = true;
  session_.reset();
  linger_until_ = edge().loop->Now() + limits::kLingerMax;
}

void Connection::OnTick(absl::Time now) {
  const bool stalled = !backlog_.empty() && now - last_write_ > limits::kWriteStallMax;
  switch (state_) {
    case State::kChoosing: {
      const absl::Duration patience = draining_ ? limits::kDrainIdle : limits::kHeaderWaitMax;
      if (now - last_read_ > patience) Abort();
      break;
    }
    case State::kOpen:
      if (stalled) return Abort();
      session_->OnTick(now);
      break;
    case State::kFinishing:
      if (stalled) Abort();
      break;
    case State::kLingering:
      if (now >= linger_until_) Abort();
      break;
    case State::kClosed:
      break;
  }
}

void Connection::StartDrain() {
  draining_ = true;
  if (state_ == State::kOpen) session_->StartDrain();
}

void Connection::WantTurn() {
  if (!turn_wanted && state_ != State::kClosed) owner_->WantTurn(this);
  turn_wanted = true;
}

void Connection::SetReading(bool on) {
  if (reading_ == on) return;
  reading_ = on;
  UpdateEvents();
}

void Connection::CloseWhenWritten(Closing closing) {
  if (state_ != State::kOpen) return;
  closing_ = closing;
  session_->OnGone();
  state_ = State::kFinishing;
  reading_ = true;
  WantTurn();
}

void Connection::Abort() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  watch_.Reset();
  if (session_ != nullptr) session_->OnGone();
  FinishLeaving(/*delivered=*/false);
  owner_->OnClosed(this);
}

void Connection::UpdateEvents() {
  if (state_ == State::kClosed) return;
  uint32_t wanted = 0;
  const bool reads = reading_ && !input_ended_;
  if (reads || write_wants_read_) wanted |= EPOLLIN;
  if (write_blocked_ || (reads && read_wants_write_)) wanted |= EPOLLOUT;
  if (wanted == events_) return;
  events_ = wanted;
  watch_.SetEvents(wanted);
}

}  // namespace tensord::front
