// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <string_view>
#include <utility>

#include "base/text.h"
#include "bench/client.h"
#include "bench/http_answer.h"
#include "bench/peer_words.h"
#include "bench/socket.h"

namespace tensord::bench {
namespace {

class RestClient final : public Client, Socket::Owner {
 public:
  RestClient(ClientPlace& place, bool one_shot)
      : loop_(place.loop),
        listener_(place.listener),
        one_shot_(one_shot),
        socket_(place.loop, place.address, &place.read_buffer, this) {}

  void Connect() override {
    if (!one_shot_) return socket_.Connect();
    loop_.Defer([this] {
      up_ = true;
      listener_.OnUp(*this);
    });
  }

  bool CanTake() const override { return up_ && call_ == nullptr; }

  void Send(Call& call) override {
    call_ = &call;
    call.client = this;
    answer_.Reset(call.body != nullptr);
    if (one_shot_) {
      was_connected_ = false;
      socket_.Connect();
    } else {
      socket_.Send(call.request->bytes);
    }
  }

  void Cancel(Call&) override {
    call_ = nullptr;
    socket_.Close();
    // As a client that gives up: HTTP/1.1 has no other way.
    if (!one_shot_) up_ = false;
    loop_.Defer([this] {
      if (one_shot_) return FreeIfIdle();
      listener_.OnDown(*this, "the deadline passed", true);
    });
  }

 private:
  void OnConnected() override {
    was_connected_ = true;
    if (one_shot_) return socket_.Send(call_->request->bytes);
    up_ = true;
    listener_.OnUp(*this);
  }

  void OnBytes(std::string_view bytes) override {
    now_ns_ = NowNanoseconds(loop_);
    if (call_ == nullptr) return Down("the server spoke without being asked");
    const std::string_view first = bytes;
    const HttpAnswer::State state = answer_.Feed(&bytes);
    if (state == HttpAnswer::State::kBad) return Down(NotHttp1(first));
    if (state == HttpAnswer::State::kDone) Finish();
  }

  void OnClosed(std::string_view why) override {
    now_ns_ = NowNanoseconds(loop_);
    if (call_ != nullptr && answer_.End()) return Finish();
    Down(why);
  }

  void Finish() {
    const bool closes = one_shot_ || !answer_.keeps_alive();
    if (closes) socket_.Close();
    if (closes && !one_shot_) up_ = false;
    Call& call = *std::exchange(call_, nullptr);
    const bool ok = answer_.status() == 200;
    if (call.body != nullptr) *call.body = answer_.body();
    const std::string words = ok ? "" : answer_.body();
    listener_.OnAnswer(call,
                       {.ok = ok, .code = answer_.status(), .words = words, .at_ns = now_ns_});
    if (closes && !one_shot_) return listener_.OnDown(*this, "the server closed it", true);
    FreeIfIdle();
  }

  void FreeIfIdle() {
    if (CanTake()) listener_.OnFree(*this);
  }

  void Down(std::string_view why) {
    const bool was_up = was_connected_;
    was_connected_ = false;
    up_ = false;
    socket_.Close();
    if (call_ != nullptr) {
      Call& call = *std::exchange(call_, nullptr);
      listener_.OnAnswer(call, {.code = kConnectionLost, .words = why, .at_ns = now_ns_});
    }
    listener_.OnDown(*this, why, was_up);
  }

  loop::EventLoop& loop_;
  Listener& listener_;
  const bool one_shot_;
  bool up_ = false;
  bool was_connected_ = false;  // The connection at hand came about.
  Call* call_ = nullptr;        // The one that is out.
  HttpAnswer answer_;
  int64_t now_ns_ = 0;
  Socket socket_;
};

}  // namespace

std::unique_ptr<Client> MakeRestClient(ClientPlace& place, bool one_shot) {
  return std::make_unique<RestClient>(place, one_shot);
}

}  // namespace tensord::bench
