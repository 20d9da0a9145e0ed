// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "loop/event_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <thread>

#include "base/limits.h"

namespace tensord::loop {
namespace {

using ::testing::ElementsAre;

// A loop on real time; every wait below ends by an event, not by the clock.
struct Fixture {
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  void RunOnce() { loop->RunOnce(absl::InfiniteFuture()); }
};

TEST(EventLoop, TimersRunInTheOrderOfTheirTimes) {
  Fixture f;
  std::vector<int> ran;
  const absl::Time now = f.loop->Now();
  f.loop->At(now + absl::Nanoseconds(2), [&] { ran.push_back(2); });
  f.loop->At(now + absl::Nanoseconds(1), [&] { ran.push_back(1); });
  const TimerId forgotten = f.loop->At(now, [&] { ran.push_back(0); });
  f.loop->Cancel(forgotten);
  while (ran.size() < 2) f.RunOnce();
  EXPECT_THAT(ran, ElementsAre(1, 2));
}

TEST(EventLoop, PostedTasksFromAnotherThreadRunInOrder) {
  Fixture f;
  std::vector<int> ran;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) EXPECT_TRUE(f.loop->Post([&, i] { ran.push_back(i); }));
    f.loop->Stop();
  });
  f.loop->Run();
  other.join();
  f.loop->RunOnce(absl::InfinitePast());
  ASSERT_EQ(ran.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(ran.begin(), ran.end()));
}

TEST(EventLoop, PostRefusesWhenTheQueueIsFull) {
  Fixture f;
  for (int i = 0; i < limits::kPostedTasksMax; ++i) ASSERT_TRUE(f.loop->Post([] {}));
  EXPECT_FALSE(f.loop->Post([] {}));
  f.RunOnce();
  EXPECT_TRUE(f.loop->Post([] {}));
}

TEST(EventLoop, DeferredTasksRunAfterEverythingElseOfTheIteration) {
  Fixture f;
  std::vector<int> ran;
  ASSERT_TRUE(f.loop->Post([&] {
    f.loop->Defer([&] {
      ran.push_back(2);
      f.loop->Defer([&] { ran.push_back(3); });
    });
  }));
  ASSERT_TRUE(f.loop->Post([&] { ran.push_back(1); }));
  f.RunOnce();
  EXPECT_THAT(ran, ElementsAre(1, 2));
  f.RunOnce();  // Does not wait: a task is due.
  EXPECT_THAT(ran, ElementsAre(1, 2, 3));
}

TEST(EventLoop, AWatchMayDestroyItselfAndItsNeighbourInItsCallback) {
  Fixture f;
  std::array<int, 2> a{};
  std::array<int, 2> b{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, a.data()), 0);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, b.data()), 0);
  std::array<base::UniqueFd, 4> owners{base::UniqueFd(a[0]), base::UniqueFd(a[1]),
                                       base::UniqueFd(b[0]), base::UniqueFd(b[1])};
  EventLoop::Watch first;
  EventLoop::Watch second;
  int calls = 0;
  const auto both_go = [&](uint32_t) {
    ++calls;
    first.Reset();
    second.Reset();
  };
  first = f.loop->Add(a[0], EPOLLIN, both_go);
  second = f.loop->Add(b[0], EPOLLIN, both_go);
  ASSERT_EQ(write(a[1], "x", 1), 1);
  ASSERT_EQ(write(b[1], "x", 1), 1);
  f.RunOnce();
  f.loop->RunOnce(absl::InfinitePast());
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace tensord::loop
