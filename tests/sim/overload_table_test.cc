// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// What queueing rules make of overload: the rules that servers have, in the same model, and ours,
// the real VersionQueue. The table is printed; each figure has to come out near what is known of it
// (docs/performance.md, "Overload").

#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <string>

#include "overload.h"

namespace tensord::sched {
namespace {

// What waits, oldest first.
using Queue = std::deque<Arrival>;

// A rule in two parts.
struct Rule {
  // Whether a call that arrives now may enter.
  std::function<bool(const Queue&, const Arrival&, absl::Time free_at)> admits =
      [](const Queue&, const Arrival&, absl::Time) { return true; };
  // Takes out of the queue what the free executor runs now, and what is dropped.
  std::function<std::vector<Arrival>(Queue*, absl::Time now, Meter*)> take;
};

absl::Time DeadlineOf(const Arrival& call) { return call.at + call.timeout; }

std::vector<Arrival> TakeFirst(Queue* queue, size_t most) {
  std::vector<Arrival> batch;
  while (!queue->empty() && batch.size() < most) {
    batch.push_back(queue->front());
    queue->pop_front();
  }
  return batch;
}

void Drop(Queue* queue, Meter* meter, const std::function<bool(const Arrival&)>& hopeless) {
  for (const Arrival& call : *queue) {
    if (hopeless(call)) meter->Late(call.at);
  }
  std::erase_if(*queue, hopeless);
}

Outcome Simulate(const Load& load, const Rule& rule) {
  Meter meter;
  Clients clients(load);
  Queue queue;
  absl::Time free_at = absl::UnixEpoch();
  const auto run = [&](absl::Time until) {
    while (!queue.empty()) {
      const absl::Time now = std::max(free_at, queue.front().at);
      if (now > until) return;
      const std::vector<Arrival> batch = rule.take(&queue, now, &meter);
      if (batch.empty()) {
        free_at = std::max(free_at, now);
        continue;
      }
      free_at = now + Service(static_cast<int64_t>(batch.size()));
      for (const Arrival& call : batch) {
        if (free_at <= DeadlineOf(call)) {
          meter.InTime(call.at, free_at - call.at);
          clients.Met(call);
        } else {
          meter.Late(call.at);
        }
      }
    }
  };
  while (const std::optional<Arrival> call = clients.Next(run)) {
    if (rule.admits(queue, *call, free_at)) {
      queue.push_back(*call);
    } else {
      meter.Refused(call->at);
      clients.Refused(*call);
    }
  }
  run(absl::InfiniteFuture());
  return meter.Sum();
}

Rule Fifo(size_t calls_max, bool drops_expired) {
  return {.admits = [=](const Queue& queue, const Arrival&,
                        absl::Time) { return queue.size() < calls_max; },
          .take =
              [=](Queue* queue, absl::Time now, Meter* meter) {
                if (drops_expired) {
                  Drop(queue, meter,
                       [now](const Arrival& call) { return DeadlineOf(call) <= now; });
                }
                return TakeFirst(queue, kRowsMax);
              }};
}

// Once the oldest has waited 5 ms or more for 100 ms, who waited longer is dropped.
Rule Codel() {
  auto good = std::make_shared<absl::Time>(absl::UnixEpoch());  // When that was last not so.
  return {.take = [good](Queue* queue, absl::Time now, Meter* meter) {
    if (now - queue->front().at < absl::Milliseconds(5)) *good = now;
    const bool overloaded = now - *good >= absl::Milliseconds(100);
    const absl::Duration wait_max = absl::Milliseconds(overloaded ? 5 : 100);
    Drop(queue, meter, [=](const Arrival& call) { return now - call.at > wait_max; });
    return TakeFirst(queue, kRowsMax);
  }};
}

// Newest first once more than one batch has waited for 100 ms.
Rule AdaptiveLifo() {
  auto emptied = std::make_shared<absl::Time>(absl::UnixEpoch());
  return {.take = [emptied](Queue* queue, absl::Time now, Meter* meter) {
    Drop(queue, meter, [now](const Arrival& call) { return DeadlineOf(call) <= now + Service(1); });
    std::vector<Arrival> batch;
    if (now - *emptied <= absl::Milliseconds(100)) {
      batch = TakeFirst(queue, kRowsMax);
    } else {
      while (!queue->empty() && batch.size() < kRowsMax) {
        batch.push_back(queue->back());
        queue->pop_back();
      }
    }
    if (queue->empty()) *emptied = now;
    return batch;
  }};
}

Rule EarliestDeadline(bool predicts) {
  Rule rule;
  rule.take = [](Queue* queue, absl::Time now, Meter* meter) {
    std::ranges::stable_sort(*queue, {}, DeadlineOf);
    const auto rows = std::min<int64_t>(kRowsMax, static_cast<int64_t>(queue->size()));
    Drop(queue, meter, [=](const Arrival& call) { return now + Service(rows) > DeadlineOf(call); });
    return TakeFirst(queue, kRowsMax);
  };
  if (!predicts) return rule;
  rule.admits = [](const Queue& queue, const Arrival& call, absl::Time free_at) {
    const auto before = static_cast<double>(std::ranges::count_if(
        queue, [&](const Arrival& other) { return DeadlineOf(other) <= DeadlineOf(call); }));
    const absl::Duration wait =
        std::max(absl::ZeroDuration(), free_at - call.at) + before / kRowsMax * Service(kRowsMax);
    return queue.empty() || call.at + wait + Service(kRowsMax) <= DeadlineOf(call);
  };
  return rule;
}

constexpr size_t kColumns = 7;

Load ColumnLoad(size_t column) {
  constexpr double kShares[kColumns] = {0.8, 1.0, 1.3, 2, 5, 2, 2};
  Load load{.share = kShares[column], .retries = column == 6};
  if (column == 5) {
    load.deadlines = {absl::Milliseconds(50), absl::Milliseconds(200), absl::Seconds(1)};
  }
  return load;
}

struct Row {
  const char* name;
  std::function<Outcome(const Load&)> server;
  std::array<double, kColumns> known;
  double slack;
};

std::vector<Row> Rows() {
  const auto rule = [](const auto& make) {
    return [make](const Load& load) { return Simulate(load, make()); };
  };
  constexpr size_t kNoLimit = SIZE_MAX;
  return {
      {"FIFO without a limit",
       rule([] { return Fifo(kNoLimit, false); }),
       {.80, .65, 0, 0, 0, 0, 0},
       .25},
      {"FIFO, 100 batches",
       rule([] { return Fifo(100 * kRowsMax, false); }),
       {.80, .65, 0, 0, 0, 0, 0},
       .25},
      {"the original's, 100 batches",
       [](const Load& load) { return TheirServer(load, 100); },
       {.80, .83, 0, 0, 0, 0, 0},
       .15},
      {"the original's, 10 batches",
       [](const Load& load) { return TheirServer(load, 10); },
       {.80, .83, 0, 0, 0, .33, .15},
       .20},
      {"FIFO, 100 batches, drops expired",
       rule([] { return Fifo(100 * kRowsMax, true); }),
       {.80, .89, .01, 0, 0, .67, 0},
       .15},
      {"FIFO, 2 batches",
       rule([] { return Fifo(2 * kRowsMax, false); }),
       {.80, .99, 1, 1, 1, .69, 1},
       .08},
      {"CoDel 5/100 ms", rule(Codel), {.55, .62, .71, .83, 1, .83, .96}, .20},
      {"adaptive LIFO", rule(AdaptiveLifo), {.80, .98, 1, 1, 1, 1, 1}, .08},
      {"earliest deadline, drops hopeless",
       rule([] { return EarliestDeadline(false); }),
       {.80, .99, 1, 1, 1, .99, 1},
       .08},
      {"... and admits by prediction",
       rule([] { return EarliestDeadline(true); }),
       {.80, .99, 1, 1, 1, .99, 1},
       .08},
      {"tensord",
       [](const Load& load) { return OurServer(load).Run(); },
       {.80, .99, 1, 1, 1, .99, 1},
       .05},
  };
}

TEST(OverloadTable, EachRuleDoesWhatIsKnownOfIt) {
  std::printf("%-34s %6s %6s %6s %6s %6s %6s %6s   p50/p99 ms at 2x\n", "goodput", "0.8x", "1.0x",
              "1.3x", "2x", "5x", "mixed", "retry");
  for (const Row& row : Rows()) {
    std::string line;
    Outcome twice;
    for (size_t column = 0; column < kColumns; ++column) {
      const Outcome outcome = row.server(ColumnLoad(column));
      if (column == 3) twice = outcome;
      char text[16];
      std::snprintf(text, sizeof(text), " %6.2f", outcome.goodput);
      line += text;
      EXPECT_NEAR(outcome.goodput, row.known[column], row.slack)
          << row.name << ", column " << column;
    }
    std::printf("%-34s%s   %.0f/%.0f\n", row.name, line.c_str(),
                absl::ToDoubleMilliseconds(twice.p50), absl::ToDoubleMilliseconds(twice.p99));
  }
}

// ---- Fairness --------------------------------------------------------------------------------

// Clients of one queue, each with its own load, all with the same deadline; the share of its calls
// that each got answered in time.
std::vector<double> ServedShares(const std::vector<double>& loads, absl::Duration timeout,
                                 double* goodput, absl::Duration* last_p99 = nullptr) {
  struct Client {
    int64_t calls = 0;
    int64_t met = 0;
    std::vector<absl::Duration> latencies = {};
  };
  loop::FakeTimers timers;
  QueueOptions options;
  options.model = "sim";
  options.signatures = {OpenSignature()};
  options.rows_max = kRowsMax;
  VersionQueue queue(timers, std::move(options));
  FakeWorker worker(timers);
  worker.time = [](const FakeRun& run) { return Service(run.rows); };
  worker.on_free = [&queue] { queue.OnWorkerFree(); };
  queue.AddWorker(&worker);
  const OwnedViews input = Floats({1, 1}, 1);
  std::vector<Client> clients(loads.size());
  struct Event {
    absl::Time at;
    size_t client;
  };
  std::vector<Event> events;
  for (size_t i = 0; i < loads.size(); ++i) {
    std::mt19937_64 random(i + 1);
    std::exponential_distribution<double> gap(loads[i] * kCapacity);
    for (absl::Time at = absl::UnixEpoch() + absl::Seconds(gap(random));
         at < absl::UnixEpoch() + kSpan; at += absl::Seconds(gap(random))) {
      events.push_back({at, i});
    }
  }
  std::ranges::sort(events, {}, &Event::at);
  for (const Event& event : events) {
    timers.AdvanceTo(event.at);
    const bool counts = event.at >= absl::UnixEpoch() + 3 * kWarmUp;
    Client* client = &clients[event.client];
    client->calls += counts ? 1 : 0;
    queue.Submit({.inputs = input.tensors,
                  .rows = 1,
                  .arrived = event.at,
                  .deadline = event.at + timeout,
                  .client = static_cast<ClientBucket>(event.client),
                  .done = [&timers, client, counts, at = event.at](CallResult result) {
                    if (!result.status.ok() || !counts) return;
                    ++client->met;
                    client->latencies.push_back(timers.Now() - at);
                  }});
  }
  while (timers.Now() < absl::UnixEpoch() + kSpan + absl::Seconds(60) && timers.RunNext()) {
  }
  std::vector<double> shares;
  double met = 0;
  for (const Client& client : clients) {
    shares.push_back(static_cast<double>(client.met) / static_cast<double>(client.calls));
    met += static_cast<double>(client.met);
  }
  *goodput = met / (kCapacity * absl::ToDoubleSeconds(kSpan - 3 * kWarmUp));
  if (last_p99 != nullptr) {
    std::vector<absl::Duration>& all = clients.back().latencies;
    std::ranges::sort(all);
    *last_p99 = all.empty() ? absl::InfiniteDuration() : all[all.size() * 99 / 100];
  }
  return shares;
}

TEST(Fairness, AFloodDoesNotCostASmallClientItsCalls) {
  double goodput = 0;
  const auto shares = ServedShares({5, 0.1}, absl::Milliseconds(100), &goodput);
  std::printf("flood 5x beside 0.1x: served %.3f and %.3f, goodput %.3f\n", shares[0], shares[1],
              goodput);
  EXPECT_GE(shares[1], 0.97);
  EXPECT_GE(goodput, 0.93);
}

TEST(Fairness, WhoAsksForLessThanItsShareGetsItAndTheRestIsSharedEvenly) {
  double goodput = 0;
  const auto shares = ServedShares({5, 3, 0.25, 0.05}, absl::Milliseconds(100), &goodput);
  std::printf("5x, 3x, 0.25x, 0.05x: served %.3f %.3f %.3f %.3f, goodput %.3f\n", shares[0],
              shares[1], shares[2], shares[3], goodput);
  EXPECT_GE(shares[2], 0.93);
  EXPECT_GE(shares[3], 0.93);
  EXPECT_GE(goodput, 0.93);
}

TEST(Fairness, PatientFloodsDoNotDelayASmallClient) {
  double goodput = 0;
  absl::Duration p99;
  const auto shares = ServedShares({3, 0.05}, absl::Hours(1), &goodput, &p99);
  std::printf("patient flood 3x beside 0.05x: served %.3f, p99 %.1f ms\n", shares[1],
              absl::ToDoubleMilliseconds(p99));
  EXPECT_GE(shares[1], 0.99);
  EXPECT_LE(p99, absl::Milliseconds(100)) << "five batches; the flood waits for ten seconds";
}

}  // namespace
}  // namespace tensord::sched
