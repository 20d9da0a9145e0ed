// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "conversation.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "front/call.h"
#include "front/testing/echo_service.h"

namespace tensord::front {
namespace {

constexpr int kTurnsMax = 100;
constexpr size_t kRoom = 64 * 1024;

class HandClock final : public base::Clock {
 public:
  absl::Time Now() const override { return now_; }
  void Move(absl::Duration by) { now_ += by; }

 private:
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
};

// One for all inputs: making a loop costs more than most conversations.
HandClock& TheClock() {
  static HandClock clock;
  return clock;
}

loop::EventLoop& TheLoop() {
  static const std::unique_ptr<loop::EventLoop> loop = *loop::EventLoop::Create(TheClock());
  return *loop;
}

// Notes what comes, then lets the echo service answer.
class NotingService final : public Service {
 public:
  void OnHead(Exchange& exchange) override { echo_.OnHead(exchange); }
  void OnRequest(std::shared_ptr<Exchange> exchange) override {
    const auto body = exchange->body();
    const RequestHead& head = exchange->head();
    requests.push_back(
        base::Cat(head.method, " ", head.target, " ",
                  std::string_view(reinterpret_cast<const char*>(body.data()), body.size())));
    echo_.OnRequest(std::move(exchange));
  }
  void OnMessage(std::shared_ptr<Exchange> exchange) override {
    echo_.OnMessage(std::move(exchange));
  }
  void OnMessagesEnd(std::shared_ptr<Exchange> exchange) override {
    echo_.OnMessagesEnd(std::move(exchange));
  }
  void LetGo() { echo_.kept.clear(); }

  std::vector<std::string> requests;

 private:
  EchoService echo_;
};

// A connection without a socket.
class LooseLink final : public Link {
 public:
  explicit LooseLink(const Edge& edge) : edge_(edge) {}

  const Edge& edge() const override { return edge_; }
  const std::string& peer() const override { return peer_; }
  void WantTurn() override { turn_wanted_ = true; }
  void Leaves(std::shared_ptr<Call> call) override { leaving_.push_back(std::move(call)); }
  void SetReading(bool on) override { reading_ = on; }
  void CloseWhenWritten(Closing) override { Abort(); }
  void Abort() override { closed_ = true; }

  bool closed() const { return closed_; }
  bool reading() const { return reading_; }

  // As many turns as the session asks for, to an end.
  size_t TakeTurns(Session* session) {
    size_t bytes = 0;
    for (int i = 0; i < kTurnsMax && !closed_ && std::exchange(turn_wanted_, false); ++i) {
      OutQueue out;
      session->Turn(&out, kRoom);
      bytes += out.bytes();
      for (const auto& call : leaving_) call->Finish(edge_.loop->Now(), /*delivered=*/true);
      leaving_.clear();
    }
    return bytes;
  }

 private:
  const Edge edge_;
  const std::string peer_ = "fuzzer";
  std::vector<std::shared_ptr<Call>> leaving_;
  bool turn_wanted_ = false;
  bool reading_ = true;
  bool closed_ = false;
};

void Feed(Session* session, std::string_view piece) {
  while (!piece.empty()) {
    std::span<std::byte> into = session->ReadInto();
    if (into.empty()) return session->OnBytes(std::as_bytes(std::span(piece)));
    const size_t size = std::min(into.size(), piece.size());
    std::memcpy(into.data(), piece.data(), size);
    session->OnBytes(into.first(size));
    piece.remove_prefix(size);
  }
}

}  // namespace

Pace Pace::FromBytes(unsigned char first, unsigned char second) {
  constexpr std::array<size_t, 8> kPieces = {0, 1, 2, 5, 9, 24, 100, 1000};
  return {.piece = kPieces[first % kPieces.size()],
          .ends = (second & 1) != 0,
          .drains = (second & 6) == 6,
          .waits = (second & 24) == 24};
}

Heard Converse(const std::function<std::unique_ptr<Session>(Link*)>& make, std::string_view bytes,
               const Pace& pace) {
  base::ByteBudget budget(1 << 20);
  NotingService service;
  Heard heard;
  {
    LooseLink link({.loop = &TheLoop(),
                    .service = &service,
                    .budget = &budget,
                    .body_bytes_max = 100'000,
                    .inflated_bytes_max = 200'000});
    const std::unique_ptr<Session> session = make(&link);
    const size_t half = bytes.size() / 2;
    size_t fed = 0;
    while (fed < bytes.size() && !link.closed() && link.reading()) {
      const size_t size = std::min(bytes.size() - fed, pace.piece == 0 ? bytes.size() : pace.piece);
      Feed(session.get(), bytes.substr(fed, size));
      if (pace.drains && fed < half && fed + size >= half) session->StartDrain();
      fed += size;
      heard.bytes_out += link.TakeTurns(session.get());
      if (!pace.waits || link.closed()) continue;
      TheClock().Move(absl::Seconds(1));
      TheLoop().RunOnce(absl::InfinitePast());
      session->OnTick(TheLoop().Now());
    }
    if (pace.ends && !link.closed()) session->OnEndOfInput();
    heard.bytes_out += link.TakeTurns(session.get());
    session->OnGone();
    TENSORD_CHECK(session->open_calls() == 0);
  }
  service.LetGo();
  TENSORD_CHECK(budget.used() == 0);
  heard.requests = std::move(service.requests);
  return heard;
}

}  // namespace tensord::front
