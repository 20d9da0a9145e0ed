// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/yield.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "obs/log.h"
#include "train/address.h"

namespace tensord::train {
namespace {

constexpr absl::Duration kLookEvery = absl::Seconds(1);
constexpr absl::Duration kAnswerWait = absl::Seconds(3);  // A server that is behind answers late.
constexpr int kLateMax = 5;  // In a row, some 20 s: what hangs must not hold ranks for ever.
constexpr absl::Duration kCalm = absl::Seconds(3);
constexpr absl::Duration kWeightTries = absl::Seconds(3);  // What waits drains, or it does not.
constexpr size_t kPageBytesMax = 8 << 20;                  // Thousands of models.
constexpr std::string_view kPath = "/monitoring/prometheus/metrics";

}  // namespace

Share Room::Decide(bool behind, absl::Time now) {
  const Share before = share_;
  if (behind) {
    behind_ = now;
    if (share_ == Share::kAll) {
      share_ = can_weigh_ ? Share::kLight : Share::kPulse;
    } else if (now - changed_ >= kWeightTries) {
      share_ = Share::kPulse;
    }
  } else if (now - std::max(behind_, changed_) >= kCalm) {
    share_ = share_ == Share::kPulse && can_weigh_ ? Share::kLight : Share::kAll;
  }
  if (share_ != before) changed_ = now;
  return share_;
}

absl::StatusOr<std::string_view> BodyOf(std::string_view answer) {
  const size_t body = answer.find("\r\n\r\n");
  if (body == std::string_view::npos) return absl::InvalidArgumentError("no HTTP answer");
  const std::string_view status = answer.substr(0, answer.find("\r\n"));
  if (status.find(" 200") == std::string_view::npos) {
    return absl::InvalidArgumentError(
        base::Cat("it says \"", status, "\" for ", kPath,
                  ": does its --monitoring_config_file enable that page?"));
  }
  return answer.substr(body + 4);
}

Yielder::Yielder(YieldSetup setup, loop::EventLoop* loop, std::function<void(Share)> make_room)
    : setup_(std::move(setup)),
      loop_(loop),
      make_room_(std::move(make_room)),
      room_(setup_.can_weigh) {}

Yielder::~Yielder() { loop_->Cancel(timer_); }

void Yielder::Ask() {
  asked_ = false;
  answer_.clear();
  auto socket = StartConnect(setup_.address);
  if (!socket.ok()) return Done(socket.status());
  socket_ = *std::move(socket);
  watch_ = loop_->Add(socket_.get(), EPOLLIN | EPOLLOUT, [this](uint32_t e) { OnReady(e); });
  loop_->Cancel(timer_);
  timer_ = loop_->At(loop_->ClockNow() + kAnswerWait,
                     [this] { Done(absl::DeadlineExceededError("no answer")); });
}

void Yielder::OnReady(uint32_t events) {
  if ((events & EPOLLOUT) != 0 && !asked_) {
    const std::string request = base::Cat("GET ", kPath, " HTTP/1.1\r\nHost: ", setup_.address,
                                          "\r\nConnection: close\r\n\r\n");
    // A few bytes into an empty buffer: all or an error.
    if (send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) {
      return Done(absl::UnavailableError(std::strerror(errno)));
    }
    asked_ = true;
    watch_.SetEvents(EPOLLIN);
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
  char bytes[16 << 10];
  const ssize_t got = recv(socket_.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0) return Done(absl::UnavailableError(std::strerror(errno)));
  answer_.append(bytes, static_cast<size_t>(got));
  if (got > 0 && answer_.size() <= kPageBytesMax) return;
  const auto page = BodyOf(answer_);
  Done(page.ok() ? setup_.read(*page) : absl::StatusOr<Pressure>(page.status()));
}

void Yielder::Done(const absl::StatusOr<Pressure>& pressure) {
  watch_.Reset();
  socket_.Reset();
  late_in_a_row_ = absl::IsDeadlineExceeded(pressure.status()) ? late_in_a_row_ + 1 : 0;
  // One too busy to answer in time stays what it was, but one that hangs is behind nothing.
  const bool late = late_in_a_row_ > 0 && late_in_a_row_ <= kLateMax;
  if (!late && pressure.ok() != std::exchange(answers_, pressure.ok())) {
    if (pressure.ok()) {
      obs::Info("--yield-to {}: it answers", setup_.address);
    } else {
      obs::Warn("--yield-to {}: {}; training goes on as if nobody needed the machine",
                setup_.address, std::string(base::Message(pressure.status())));
    }
  }
  const bool behind =
      late ? share_ != Share::kAll
           : pressure.ok() && (pressure->queue_calls > setup_.queue_calls_max ||
                               (setup_.p99_milliseconds_max > 0 &&
                                pressure->p99_milliseconds > setup_.p99_milliseconds_max));
  const Share share = room_.Decide(behind, loop_->ClockNow());
  const Share before = std::exchange(share_, share);
  if (share != before) {
    if (share == Share::kAll || share < before) {
      obs::Info("the server at {} has caught up: ranks {}", setup_.address,
                share == Share::kAll ? "run freely" : "are not paused any more");
    } else {
      const Pressure now = pressure.value_or(Pressure());
      obs::Info("the server at {} is behind ({} calls wait, p99 {} ms): ranks make room, {}",
                setup_.address, now.queue_calls, now.p99_milliseconds,
                share == Share::kLight ? "by a low CPU weight" : "by pauses");
    }
    make_room_(share);
  }
  loop_->Cancel(timer_);
  timer_ = loop_->At(loop_->ClockNow() + kLookEvery, [this] { Ask(); });
}

}  // namespace tensord::train
