// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/lane.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace tensord::bench {
namespace {

constexpr int64_t kForever = std::numeric_limits<int64_t>::max();
constexpr int kSendsAtOnce = 500;  // Then answers are read, however late the load is.
constexpr absl::Duration kReconnectPause = absl::Milliseconds(50);
constexpr int64_t kGoneAfterNs = 2'000'000'000;  // A server that starts again is back by then.
constexpr absl::Duration kDrainMax = absl::Seconds(10);  // For answers after the last request.

std::vector<double> Weights(const Mix& mix) {
  std::vector<double> weights;
  for (const Kind& kind : mix.kinds) weights.push_back(kind.weight);
  return weights;
}

absl::Duration ThreadCpu() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return absl::DurationFromTimeval(usage.ru_utime) + absl::DurationFromTimeval(usage.ru_stime);
}

absl::Time TimeOf(int64_t ns) { return absl::FromUnixNanos(ns); }

}  // namespace

Lane::Lane(int number, const LoadPlan& plan, loop::EventLoop& loop, Owner* owner)
    : number_(number),
      plan_(plan),
      loop_(loop),
      owner_(*owner),
      choice_(Weights(*plan.mix)),
      place_{.loop = loop, .address = *plan.address, .listener = *this},
      timed_(plan.mix->kinds.size()),
      random_(plan.seed * 1'000 + static_cast<uint64_t>(number)),
      next_variant_(plan.mix->kinds.size()) {
  part_.tally.kinds.resize(plan.mix->kinds.size());
}

Lane::~Lane() = default;

// ---- Connections ----

void Lane::Open() {
  for (int i = 0; i < plan_.connections; ++i) {
    clients_.push_back(plan_.rest ? MakeRestClient(place_, plan_.one_shot)
                                  : MakeGrpcClient(place_));
    clients_.back()->Connect();
  }
}

void Lane::OnUp(Client& client) {
  ++clients_up_;
  ServeWaiting(client);
  if (plan_.rest && client.CanTake()) idle_.push_back(&client);
  if (phase_ == Phase::kConnecting && clients_up_ == clients_.size()) {
    phase_ = Phase::kUp;
    owner_.OnUp(number_);
  }
}

void Lane::OnDown(Client& client, std::string_view why, bool was_up) {
  if (phase_ == Phase::kDone) return;
  if (phase_ == Phase::kConnecting) {
    phase_ = Phase::kDone;
    return owner_.OnFailed(number_,
                           base::Cat("cannot connect to ", plan_.address->name, ": ", why));
  }
  if (clients_up_ > 0) --clients_up_;
  const int64_t now = Now();
  if (!was_up && first_refusal_ns_ == 0) first_refusal_ns_ = now;
  const bool started = phase_ == Phase::kSending || phase_ == Phase::kDraining;
  if (started && first_refusal_ns_ != 0 && now - first_refusal_ns_ > kGoneAfterNs) {
    if (part_.ended_early.empty()) {
      part_.ended_early = base::Cat("the server at ", plan_.address->name, " has gone: ", why);
    }
    EndWindow("");
    return GiveUp();
  }
  // With a pause, because who closes every connection would keep us busy with nothing else.
  loop_.At(loop_.Now() + (was_up ? absl::ZeroDuration() : kReconnectPause),
           [&client] { client.Connect(); });
}

void Lane::OnFree(Client& client) {
  ServeWaiting(client);
  if (client.CanTake()) idle_.push_back(&client);
}

void Lane::ServeWaiting(Client& client) {
  while (!waiting_.empty() && client.CanTake()) {
    Call& call = *waiting_.front();
    waiting_.pop_front();
    if (call.expired) {
      Retire(call);
    } else {
      call.sent_ns = Now();
      Dispatch(call, &client);
    }
  }
}

Client* Lane::Pick() {
  if (plan_.rest) {
    while (!idle_.empty()) {
      Client* client = idle_.back();
      idle_.pop_back();
      if (client->CanTake()) return client;
    }
    return nullptr;
  }
  for (size_t i = 0; i < clients_.size(); ++i) {
    Client* client = clients_[next_client_].get();
    next_client_ = next_client_ + 1 == clients_.size() ? 0 : next_client_ + 1;
    if (client->CanTake()) return client;
  }
  return nullptr;
}

// ---- Sending ----

void Lane::Start(int64_t at_ns) {
  phase_ = Phase::kSending;
  start_ns_ = at_ns;
  from_ns_ = at_ns + absl::ToInt64Nanoseconds(plan_.warm_up);
  to_ns_ =
      plan_.requests.has_value() ? kForever : from_ns_ + absl::ToInt64Nanoseconds(plan_.duration);
  loop_.At(TimeOf(from_ns_), [this] { OnWindowStart(); });
  if (!plan_.requests.has_value()) loop_.At(TimeOf(to_ns_), [this] { EndWindow(""); });
  if (open()) {
    arrival_timer_.Reset(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    TENSORD_CHECK(arrival_timer_.valid());
    arrival_watch_ = loop_.Add(arrival_timer_.get(), EPOLLIN, [this](uint32_t) { SendDue(); });
    arrivals_.emplace(plan_.pacing, plan_.rate, random_());
    next_due_ns_ = start_ns_ + arrivals_->Next();
    return ArmArrivals();
  }
  loop_.At(TimeOf(at_ns), [this] {
    const int64_t now = Now();
    for (int i = 0; i < plan_.in_flight && phase_ == Phase::kSending; ++i) Issue(now, nullptr);
  });
}

void Lane::ArmArrivals() {
  itimerspec when{};
  when.it_value.tv_sec = next_due_ns_ / 1'000'000'000;
  when.it_value.tv_nsec = next_due_ns_ % 1'000'000'000;
  timerfd_settime(arrival_timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void Lane::SendDue() {
  const int64_t now = Now();
  for (int i = 0; i < kSendsAtOnce && next_due_ns_ <= now; ++i) {
    Issue(next_due_ns_, nullptr);
    if (phase_ != Phase::kSending) return;
    next_due_ns_ = start_ns_ + arrivals_->Next();
  }
  ArmArrivals();
}

// Whether a request that is due now belongs to the measurement. Closed loop over a time: what is
// answered in it counts, whenever it was sent, or slow answers would be missing at the end.
bool Lane::Counts(int64_t due_ns) {
  if (!InWindow(due_ns)) return false;
  if (plan_.requests.has_value()) return counted_ < *plan_.requests;
  return open();
}

void Lane::Issue(int64_t due_ns, Client* preferred) {
  if (due_ns >= to_ns_) return;
  Call& call = NewCall(due_ns);
  call.sent_ns = open() ? Now() : due_ns;
  call.counted = Counts(due_ns);
  if (call.counted) {
    ++counted_;
    last_counted_ns_ = due_ns;
    if (open()) part_.tally.lateness.Record(call.sent_ns - due_ns);
  }
  if (open() && out_ > static_cast<uint64_t>(plan_.in_flight)) {
    CountFailure(call, kNotSent, base::Cat("more than ", plan_.in_flight, " were out"));
    Retire(call);
  } else {
    WatchDeadline(call);
    Dispatch(call, preferred);
  }
  if (plan_.requests.has_value() && counted_ == *plan_.requests) EndWindow("");
}

void Lane::Dispatch(Call& call, Client* preferred) {
  Client* client = preferred != nullptr && preferred->CanTake() ? preferred : Pick();
  if (client == nullptr) {
    waiting_.push_back(&call);
    return;
  }
  ++part_.sent;
  client->Send(call);
}

Call& Lane::NewCall(int64_t due_ns) {
  if (free_calls_.empty()) {
    calls_.emplace_back();
    free_calls_.push_back(&calls_.back());
  }
  Call& call = *free_calls_.back();
  free_calls_.pop_back();
  call.kind = static_cast<uint32_t>(choice_.Draw(random_));
  const std::vector<Request>& variants = plan_.mix->kinds[call.kind].variants;
  size_t& next = next_variant_[call.kind];
  call.request = &variants[next];
  next = next + 1 == variants.size() ? 0 : next + 1;
  call.expired = false;
  call.client = nullptr;
  call.due_ns = due_ns;
  ++out_;
  return call;
}

void Lane::Retire(Call& call) {
  ++call.generation;
  call.counted = false;
  free_calls_.push_back(&call);
  --out_;
}

void Lane::OnAnswer(Call& call, const Answer& answer) {
  if (answer.code != kConnectionLost) first_refusal_ns_ = 0;
  if (InWindow(answer.at_ns)) {
    ++part_.answers_in_window;
    if (!open() && !plan_.requests.has_value()) call.counted = true;
  }
  if (phase_ != Phase::kDone) Count(call, answer);
  Client* client = call.client;
  Retire(call);
  if (phase_ == Phase::kSending && !open()) {
    Issue(answer.at_ns, client);
  } else {
    MaybeDone();
  }
}

// ---- Deadlines ----

void Lane::WatchDeadline(Call& call) {
  const Kind& kind = plan_.mix->kinds[call.kind];
  if (!plan_.deadlines || kind.deadline == absl::InfiniteDuration()) return;
  std::deque<Timed>& timed = timed_[call.kind];
  while (!timed.empty() && Stale(timed.front())) timed.pop_front();
  timed.push_back({&call, call.generation});
  ArmDeadlines(call.due_ns + absl::ToInt64Nanoseconds(kind.deadline));
}

void Lane::ArmDeadlines(int64_t at_ns) {
  if (deadline_timer_ns_ != 0 && deadline_timer_ns_ <= at_ns) return;
  if (deadline_timer_ns_ != 0) loop_.Cancel(deadline_timer_);
  deadline_timer_ns_ = at_ns;
  deadline_timer_ = loop_.At(TimeOf(at_ns), [this] { Expire(); });
}

void Lane::Expire() {
  deadline_timer_ns_ = 0;
  const int64_t now = Now();
  int64_t next = kForever;
  for (size_t i = 0; i < timed_.size(); ++i) {
    const int64_t deadline = absl::ToInt64Nanoseconds(plan_.mix->kinds[i].deadline);
    std::deque<Timed>& timed = timed_[i];
    while (!timed.empty() &&
           (Stale(timed.front()) || timed.front().call->due_ns + deadline <= now)) {
      const Timed first = timed.front();
      timed.pop_front();
      if (!Stale(first)) ExpireCall(*first.call);
    }
    if (!timed.empty()) next = std::min(next, timed.front().call->due_ns + deadline);
  }
  if (next != kForever) ArmDeadlines(next);
}

void Lane::ExpireCall(Call& call) {
  Client* client = call.client;
  const int64_t now = Now();
  if (InWindow(now) && !open() && !plan_.requests.has_value()) call.counted = true;
  CountFailure(call, kDeadlinePassed, "the call was cancelled");
  if (client == nullptr) {
    call.expired = true;  // Whoever takes it from waiting_ retires it.
    call.counted = false;
    ++call.generation;
  } else {
    client->Cancel(call);
    Retire(call);
  }
  if (phase_ == Phase::kSending && !open()) Issue(now, client);
  MaybeDone();
}

// ---- Counting, and the end ----

void Lane::Count(const Call& call, const Answer& answer) {
  if (!call.counted) return;
  const int64_t latency = answer.at_ns - call.due_ns;
  last_counted_ns_ = std::max(last_counted_ns_, answer.at_ns);
  if (!answer.ok) {
    CountFailure(call, answer.code, answer.words);
    if (IsRefusal(answer.code)) part_.tally.refusal.Record(answer.at_ns - call.sent_ns);
    return;
  }
  const absl::Duration deadline = plan_.mix->kinds[call.kind].deadline;
  if (plan_.deadlines && absl::Nanoseconds(latency) > deadline) {
    return CountFailure(call, kLate, "");
  }
  ++part_.tally.answered;
  ++second_.answered;
  second_.latency.Record(latency);
  part_.tally.service.Record(answer.at_ns - call.sent_ns);
  KindTally& kind = part_.tally.kinds[call.kind];
  ++kind.answered;
  if (timed_.size() > 1 && call.kind < Tally::kKindsInDetail) kind.latency.Record(latency);
}

void Lane::CountFailure(const Call& call, int code, std::string_view words) {
  if (!call.counted) return;
  ++second_.failed;
  part_.tally.CountFailure(call.kind, code, words);
}

void Lane::OnWindowStart() {
  cpu_before_ = ThreadCpu();
  loop_.At(TimeOf(from_ns_) + absl::Seconds(1), [this] { Tick(); });
}

void Lane::Tick() {
  if (phase_ != Phase::kSending) return;
  loop_.At(loop_.Now() + absl::Seconds(1), [this] { Tick(); });
  part_.tally.latency.Merge(second_.latency);
  second_.out = out_;
  owner_.OnSecond(number_, std::exchange(second_, {}));
}

void Lane::EndWindow(std::string_view why) {
  if (phase_ != Phase::kSending) return;
  if (part_.ended_early.empty()) part_.ended_early = why;
  phase_ = Phase::kDraining;
  arrival_watch_.Reset();
  to_ns_ = std::min(to_ns_, plan_.requests.has_value() ? kForever : Now());
  part_.cpu = ThreadCpu() - cpu_before_;
  owner_.OnWindowEnd(number_);
  loop_.At(loop_.Now() + kDrainMax, [this] { GiveUp(); });
  loop_.Defer([this] { MaybeDone(); });
}

void Lane::MaybeDone() {
  for (; !waiting_.empty() && waiting_.front()->expired; waiting_.pop_front()) {
    Retire(*waiting_.front());
  }
  if (phase_ == Phase::kDraining && out_ == 0) Done();
}

void Lane::GiveUp() {
  if (phase_ != Phase::kDraining) return;
  for (const Call& call : calls_) CountFailure(call, kUnanswered, "");
  Done();
}

void Lane::Done() {
  phase_ = Phase::kDone;
  if (plan_.requests.has_value() && (!open() || last_counted_ns_ > from_ns_)) {
    part_.window_ns = last_counted_ns_ - from_ns_;
  } else {
    part_.window_ns = std::min(to_ns_, Now()) - from_ns_;
  }
  part_.window_ns = std::max<int64_t>(part_.window_ns, 0);
  part_.tally.latency.Merge(second_.latency);
  owner_.OnDone(number_, std::move(part_));
}

}  // namespace tensord::bench
