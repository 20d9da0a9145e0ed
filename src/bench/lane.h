// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "bench/arrivals.h"
#include "bench/client.h"
#include "bench/mix.h"
#include "bench/plan.h"
#include "bench/tally.h"
#include "loop/event_loop.h"

namespace tensord::bench {

// One thread's part of a load: its connections, and the requests that are out.
//
// Life: Open; then the owner is told OnUp and calls Start; OnWindowEnd when the last measured
// request has been sent; OnDone when all have come to an end. Whatever the owner is told, it is
// told once and on the lane's thread. Threads: the loop's.
class Lane final : Client::Listener {
 public:
  // What this lane found.
  struct Part {
    Tally tally;
    uint64_t sent = 0;
    uint64_t answers_in_window = 0;
    absl::Duration cpu;  // Of the thread, in the window.
    int64_t window_ns = 0;
    std::string ended_early;
  };
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void OnUp(int lane) = 0;
    virtual void OnSecond(int lane, Second second) = 0;
    virtual void OnWindowEnd(int lane) = 0;
    virtual void OnDone(int lane, Part part) = 0;
    // Before OnUp, and instead of it: there is no server.
    virtual void OnFailed(int lane, std::string why) = 0;
  };

  // `plan` is this lane's share: one thread's connections, in_flight, requests and rate.
  Lane(int number, const LoadPlan& plan, loop::EventLoop& loop, Owner* owner);
  ~Lane() override;

  // Connects.
  void Open();
  // Sends from `at_ns` of the monotonic clock on.
  void Start(int64_t at_ns);
  // Ends the measurement before its time.
  void EndWindow(std::string_view why);

 private:
  enum class Phase { kConnecting, kUp, kSending, kDraining, kDone };

  // A call that has a deadline. Stale when the generation has moved on.
  struct Timed {
    Call* call;
    uint32_t generation;
  };

  void OnUp(Client& client) override;
  void OnDown(Client& client, std::string_view why, bool was_up) override;
  void OnAnswer(Call& call, const Answer& answer) override;
  void OnFree(Client& client) override;

  int64_t Now() const { return NowNanoseconds(loop_); }
  bool open() const { return plan_.pacing != Pacing::kClosed; }
  bool InWindow(int64_t at_ns) const { return at_ns >= from_ns_ && at_ns < to_ns_; }

  // Sending.
  void SendDue();
  void ArmArrivals();
  void Issue(int64_t due_ns, Client* preferred);
  void Dispatch(Call& call, Client* preferred);
  Client* Pick();
  Call& NewCall(int64_t due_ns);
  void Retire(Call& call);
  bool Counts(int64_t due_ns);
  void ServeWaiting(Client& client);

  // Deadlines.
  void WatchDeadline(Call& call);
  bool Stale(const Timed& timed) const { return timed.call->generation != timed.generation; }
  void ArmDeadlines(int64_t at_ns);
  void Expire();
  void ExpireCall(Call& call);

  // Counting, and the end.
  void Count(const Call& call, const Answer& answer);
  void CountFailure(const Call& call, int code, std::string_view words);
  void OnWindowStart();
  void Tick();
  void MaybeDone();
  void GiveUp();
  void Done();

  const int number_;
  const LoadPlan plan_;
  loop::EventLoop& loop_;
  Owner& owner_;
  const Choice choice_;
  ClientPlace place_;

  Phase phase_ = Phase::kConnecting;
  std::vector<std::unique_ptr<Client>> clients_;
  size_t clients_up_ = 0;
  size_t next_client_ = 0;        // gRPC: in turn.
  std::vector<Client*> idle_;     // REST: may hold some that are busy again.
  std::deque<Call*> waiting_;     // For a client.
  int64_t first_refusal_ns_ = 0;  // Of connecting, since the last answer.

  std::deque<Call> calls_;  // Grows to the most that were out.
  std::vector<Call*> free_calls_;
  uint64_t out_ = 0;                      // Sent or waiting.
  std::vector<std::deque<Timed>> timed_;  // By kind, in the order of their deadlines.
  int64_t deadline_timer_ns_ = 0;         // 0: no timer runs.
  loop::TimerId deadline_timer_ = 0;

  std::mt19937_64 random_;
  std::vector<size_t> next_variant_;  // By kind.
  std::optional<Arrivals> arrivals_;
  int64_t start_ns_ = 0;
  int64_t next_due_ns_ = 0;
  base::UniqueFd arrival_timer_;  // Nanoseconds; the loop's own timers have milliseconds.
  loop::EventLoop::Watch arrival_watch_;

  int64_t from_ns_ = 0;
  int64_t to_ns_ = 0;
  uint64_t counted_ = 0;  // Requests that were given a place in the measurement.
  int64_t last_counted_ns_ = 0;
  absl::Duration cpu_before_;
  Part part_;
  Second second_;
};

}  // namespace tensord::bench
