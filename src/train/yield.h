// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "loop/event_loop.h"

// A training job that makes room for a server on its machine.
namespace tensord::train {

// What a server is under.
struct Pressure {
  double queue_calls = 0;       // Waiting now.
  double p99_milliseconds = 0;  // Since the last look; the slowest model's.
};

struct YieldSetup {
  std::string address = {};  // "host:port" of its REST port; empty: to nobody.
  double queue_calls_max = 0;
  double p99_milliseconds_max = 0;  // 0: not looked at.
  bool can_weigh = false;           // The ranks' control group has a weight that we may set.
  // Reads its page of metrics; keeps the last one, to tell what is new.
  std::function<absl::StatusOr<Pressure>(std::string_view page)> read = {};
};

// What ranks leave to others.
enum class Share {
  kAll,    // They run freely.
  kLight,  // Their control group weighs little: they get what others leave over.
  kPulse,  // Stopped three quarters of the time.
};

// How much room ranks make: at once when the server is behind, by their weight first where that
// is ours to set, and by pauses where it is not, or did not help in a while. Room is given back
// step by step when the server was not behind for a while, so that a job does not come back into
// every gap. Pure.
class Room {
 public:
  explicit Room(bool can_weigh) : can_weigh_(can_weigh) {}
  Share Decide(bool behind, absl::Time now);

 private:
  const bool can_weigh_;
  Share share_ = Share::kAll;
  absl::Time changed_ = absl::InfinitePast();
  absl::Time behind_ = absl::InfinitePast();
};

// The body of an answer "HTTP/1.1 200 …", with a length or until the end; INVALID_ARGUMENT else.
absl::StatusOr<std::string_view> BodyOf(std::string_view answer);

// Looks at the server every second. One that does not answer, or only takes
// connections for a while, is behind nothing.
// Threads: the loop's.
class Yielder {
 public:
  // `make_room` hears each change.
  Yielder(YieldSetup setup, loop::EventLoop* loop, std::function<void(Share)> make_room);
  ~Yielder();
  void Start() { Ask(); }

 private:
  void Ask();
  void OnReady(uint32_t events);
  void Done(const absl::StatusOr<Pressure>& pressure);

  const YieldSetup setup_;
  loop::EventLoop* const loop_;
  const std::function<void(Share)> make_room_;
  base::UniqueFd socket_;
  loop::EventLoop::Watch watch_;
  loop::TimerId timer_ = 0;
  bool asked_ = false;
  int late_in_a_row_ = 0;
  bool answers_ = true;  // Said once when it does not.
  Share share_ = Share::kAll;
  std::string answer_;
  Room room_;
};

}  // namespace tensord::train
