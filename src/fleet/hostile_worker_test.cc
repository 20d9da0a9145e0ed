// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// A worker that breaks every rule it can: its runs have one outcome each, no slot is lost, and it
// is killed.

#include <sys/socket.h>

#include <cstring>
#include <functional>
#include <random>

#include "base/limits.h"
#include "fleet/testing/worker_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/string_layout.h"

namespace tensord::fleet {
namespace {

using channel::Completion;
using channel::Run;

// One sin, committed while a run of "twice" and one of "strings" are out.
struct Sin {
  const char* name;
  std::function<void(FakeProcess& worker, const Run& twice, const Run& strings)> commit;
  const char* words;
};

void PrintTo(const Sin& sin, std::ostream* out) { *out << sin.name; }

channel::TensorDescriptor Floats(uint64_t offset, int64_t rows) {
  return {.dtype = tensor::DType::kFloat,
          .shape = {rows},
          .offset = offset,
          .bytes = static_cast<uint64_t>(rows) * 4};
}

// Changes the right answer to `run` and says it.
void SayChanged(FakeProcess& worker, const Run& run,
                const std::function<void(Completion&)>& change) {
  Completion answer = worker.Answer(run);
  change(answer);
  worker.SayAnswers({answer});
}

const std::vector<Sin>& Sins() {
  static const auto* sins = new std::vector<Sin>{
      {"an id that is not out",
       [](auto& worker, const auto& twice, const auto&) {
         SayChanged(worker, twice, [](Completion& answer) { answer.id += 100; });
       },
       "not out"},
      {"an answer twice, in one record",
       [](auto& worker, const auto& twice, const auto&) {
         worker.SayAnswers({worker.Answer(twice), worker.Answer(twice)});
       },
       "not out"},
      {"an error twice, in two records",
       [](auto& worker, const auto& twice, const auto&) {
         const Completion error{.id = twice.id, .status = absl::InternalError("no")};
         worker.SayAnswers({error});
         worker.SayAnswers({error});
       },
       "not out"},
      {"an output too few",
       [](auto& worker, const auto& twice, const auto&) {
         SayChanged(worker, twice, [](Completion& answer) { answer.outputs.pop_back(); });
       },
       "outputs"},
      {"an output too many",
       [](auto& worker, const auto& twice, const auto&) {
         SayChanged(worker, twice,
                    [](Completion& answer) { answer.outputs.push_back(answer.outputs[1]); });
       },
       "outputs"},
      {"no outputs",
       [](auto& worker, const auto& twice, const auto&) { worker.SayAnswers({{.id = twice.id}}); },
       "outputs"},
      {"another dtype",
       [](auto& worker, const auto& twice, const auto&) {
         SayChanged(worker, twice,
                    [](Completion& answer) { answer.outputs[1].dtype = tensor::DType::kInt32; });
       },
       "int32, not float"},
      {"outputs before its region",
       [](auto& worker, const auto&, const auto& strings) {
         SayChanged(worker, strings, [](Completion& answer) { answer.outputs[0].offset -= 64; });
       },
       "outside its region"},
      {"outputs behind its region",
       [](auto& worker, const auto& twice, const auto&) {
         SayChanged(worker, twice, [&twice](Completion& answer) {
           answer.outputs[1] = Floats(twice.response_offset + twice.response_bytes - 64, 17);
         });
       },
       "outside its region"},
      {"outputs behind the segment",
       [](auto& worker, const auto& twice, const auto&) {
         SayChanged(worker, twice,
                    [](Completion& answer) { answer.outputs[1].offset = uint64_t{1} << 62; });
       },
       "outside its region"},
      {"outputs larger than memory",
       [](auto& worker, const auto& twice, const auto&) {
         SayChanged(worker, twice, [&twice](Completion& answer) {
           answer.outputs[1] = Floats(twice.response_offset, int64_t{1} << 29);
         });
       },
       "outside its region"},
      {"a string table that steps back",
       [](auto& worker, const auto&, const auto& strings) {
         const Completion answer = worker.Answer(strings);
         const uint64_t evil = ~uint64_t{0} - 7;
         std::memcpy(worker.Region(strings).data() + 8, &evil, sizeof(evil));
         worker.SayAnswers({answer});
       },
       "string offset"},
      {"held twice",
       [](auto& worker, const auto& twice, const auto&) {
         const Completion held{.id = twice.id, .held = true, .held_bytes = 1000};
         worker.SayAnswers({held});
         worker.SayAnswers({held});
       },
       "held twice"},
      {"held, and outputs outside what was collected into",
       [](auto& worker, const auto& twice, const auto&) {
         worker.SayAnswers({{.id = twice.id, .held = true, .held_bytes = 1000}});
         SayChanged(worker, twice, [](Completion& answer) { answer.outputs[1].offset = 1024; });
       },
       "outside its region"},
      {"garbage",
       [](auto& worker, const auto&, const auto&) {
         worker.SayBytes("garbage, and then some more");
       },
       "malformed record"},
      {"a record cut short",
       [](auto& worker, const auto& twice, const auto&) {
         channel::CompletionRecord record;
         record.completions = {worker.Answer(twice)};
         std::string bytes = channel::Encode(worker.incarnation(), channel::ToFront(record));
         bytes.pop_back();
         worker.SayBytes(bytes);
       },
       "cut short"},
      {"a record longer than any",
       [](auto& worker, const auto&, const auto&) {
         worker.SayBytes(std::string(limits::kRecordBytesMax + 1, 'x'));
       },
       "longer"},
      {"huge dims",
       [](auto& worker, const auto& twice, const auto&) {
         channel::CompletionRecord record;
         record.completions = {worker.Answer(twice)};
         std::string bytes = channel::Encode(worker.incarnation(), channel::ToFront(record));
         const int64_t dim = int64_t{1} << 62;
         const size_t dims_at = bytes.size() - sizeof(dim) - 8;  // Before the status.
         std::memcpy(bytes.data() + dims_at, &dim, sizeof(dim));
         worker.SayBytes(bytes);
       },
       "elements"},
      {"a descriptor",
       [](auto& worker, const auto&, const auto&) {
         worker.SayBytes(
             channel::Encode(worker.incarnation(), channel::ToFront(channel::HeartbeatRecord{})),
             {worker.socket().fd()});
       },
       "carries more"},
      {"words of another incarnation",
       [](auto& worker, const auto&, const auto&) {
         worker.SayBytes(channel::Encode(worker.incarnation() + 1,
                                         channel::ToFront(channel::HeartbeatRecord{})));
       },
       "incarnation"},
      {"the front's own words",
       [](auto& worker, const auto&, const auto&) {
         worker.SayBytes(
             channel::Encode(worker.incarnation(), channel::ToWorker(channel::StopRecord{})));
       },
       "kind"},
      {"a second hello",
       [](auto& worker, const auto&, const auto&) { worker.Say(channel::HelloRecord{}); },
       "second hello"},
      {"a second load",
       [](auto& worker, const auto&, const auto&) {
         worker.Say(channel::LoadedRecord{.info_bytes = 10});
       },
       "loaded twice"},
      {"a load that failed after all",
       [](auto& worker, const auto&, const auto&) {
         worker.Say(channel::LoadFailedRecord{.status = absl::InternalError("no")});
       },
       "failed"},
      {"an empty record",
       [](auto& worker, const auto&, const auto&) {
         send(worker.socket().fd(), "", 0, MSG_NOSIGNAL);
       },
       "died"},
      {"a closed channel", [](auto& worker, const auto&, const auto&) { worker.Close(); }, "died"},
      {"half a channel closed",
       [](auto& worker, const auto&, const auto&) { shutdown(worker.socket().fd(), SHUT_WR); },
       "died"},
  };
  return *sins;
}

class HostileWorkerTest : public WorkerFixture, public ::testing::WithParamInterface<Sin> {};

TEST_P(HostileWorkerTest, IsEndedAndItsRunsAreAnsweredOnce) {
  StartLoaded(1, 1 << 20);
  Asked* twice = AskTwice({1, 2});
  Asked* strings = AskStrings({{"one", "two"}});
  Turn();
  const std::vector<channel::Run> runs = process_->HearRuns();
  ASSERT_EQ(runs.size(), 2u);
  GetParam().commit(*process_, runs[0], runs[1]);
  Turn();
  // One of the two may have had its right answer before; what is out goes down with the worker.
  EXPECT_EQ(twice->outcomes, 1);
  EXPECT_EQ(strings->outcomes, 1);
  const Asked& lost = twice->outcome.worker_lost ? *twice : *strings;
  ExpectLost(lost, GetParam().words);
  Advance(absl::Milliseconds(200));
  EXPECT_GT(kills_, 0);
  EXPECT_EQ(ends_, 0);
  handle_->OnProcessEnded(9);
  Turn();
  EXPECT_EQ(ends_, 1);
  EXPECT_EQ(end_, End::kDied);
  Advance(absl::Minutes(1));
  EXPECT_EQ(twice->outcomes + strings->outcomes, 2);
  EXPECT_EQ(ends_, 1);
}

INSTANTIATE_TEST_SUITE_P(Sins, HostileWorkerTest, ::testing::ValuesIn(Sins()));

using HostileLoadTest = WorkerFixture;

TEST_F(HostileLoadTest, ADescriptionLargerThanItsSegmentIsNotRead) {
  Start();
  process_->Say(channel::HelloRecord{});
  process_->Say(channel::LoadedRecord{.info_bytes = 64 * 1024 + 1});
  Turn();
  EXPECT_EQ(loads_, 0);
  EXPECT_GT(kills_, 0);
}

TEST_F(HostileLoadTest, AMalformedDescriptionIsNotBelieved) {
  Start();
  process_->Say(channel::HelloRecord{});
  process_->Say(channel::LoadedRecord{.info_bytes = process_->WriteInfo("\xff\xff\xff")});
  Turn();
  EXPECT_EQ(loads_, 0);
  EXPECT_GT(kills_, 0);
}

TEST_F(HostileLoadTest, AMalformedSignatureMapIsNotBelieved) {
  Start();
  engine::ModelInfo info;
  info.signature_def_map = "\x0a\xff";
  process_->Say(channel::HelloRecord{});
  process_->Say(channel::LoadedRecord{.info_bytes = process_->WriteInfo(engine::Serialize(info))});
  Turn();
  EXPECT_EQ(loads_, 0);
  EXPECT_GT(kills_, 0);
}

TEST_F(HostileLoadTest, WordsBeforeHelloAreRefused) {
  Start();
  process_->Say(channel::LoadedRecord{.info_bytes = process_->WriteInfo(FakeProcess::InfoBytes())});
  Turn();
  EXPECT_EQ(loads_, 0);
  EXPECT_GT(kills_, 0);
}

TEST_F(HostileLoadTest, AnAnswerBeforeTheModelIsLoadedIsRefused) {
  Start();
  process_->Say(channel::HelloRecord{});
  process_->SayAnswers({{.id = 1}});
  Turn();
  EXPECT_GT(kills_, 0);
}

TEST_F(HostileLoadTest, AFloodOfHeartbeatsIsEnded) {
  StartLoaded();
  for (int i = 0; i < 3 * limits::kHeartbeatsMax && kills_ == 0; ++i) {
    process_->Say(channel::HeartbeatRecord{});
    if (i % 50 == 49) Turn();
  }
  Turn();
  EXPECT_GT(kills_, 0);
}

TEST_F(HostileLoadTest, AWorkerThatNeverReadsIsKilledByItsSilence) {
  StartLoaded(256, 1 << 20);
  while (handle_->Free() > 0 && kills_ == 0) AskTwice({1});
  Turn();
  Advance(limits::kHeartbeatLost + absl::Milliseconds(300));
  EXPECT_GT(kills_, 0);
  for (const auto& asked : asked_) EXPECT_EQ(asked->outcomes, 1);
  EXPECT_EQ(handle_->slots_out(), 0u);
}

// Random right and wrong words, at random times, from one seed.
class RandomWorker {
 public:
  RandomWorker(uint32_t seed, FakeProcess& process) : random_(seed), process_(process) {}

  void Act() {
    for (Run& run : process_.HearRuns()) runs_.push_back(std::move(run));
    if (runs_.empty()) return;
    const size_t pick = random_() % runs_.size();
    const Run run = runs_[pick];
    if (random_() % 8 != 0) runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(pick));
    Completion answer = process_.Answer(run);
    if (answer.held) return;  // Never collected: such a run stays out.
    if (random_() % 30 == 0) Spoil(&answer);
    process_.SayAnswers({answer});
  }

 private:
  void Spoil(Completion* answer) {
    channel::TensorDescriptor& output = answer->outputs[random_() % answer->outputs.size()];
    switch (random_() % 5) {
      case 0:
        output.offset = random_() % 4096 * 64;
        break;
      case 1:
        answer->id = random_() % 40;
        break;
      case 2:
        answer->outputs.clear();
        break;
      case 3:
        answer->inputs_retained = true;
        break;
      default:
        answer->outputs.clear();
        answer->status = absl::InternalError("spoilt");
    }
  }

  std::mt19937 random_;
  FakeProcess& process_;
  std::vector<Run> runs_;
};

TEST_F(HostileLoadTest, RandomWordsNeverAnswerARunTwiceOrLoseASlot) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    asked_.clear();
    pieces_.clear();
    handle_.reset();
    kills_ = loads_ = ends_ = 0;
    StartLoaded(2, 1 << 20);
    RandomWorker worker(seed, *process_);
    for (int step = 0; step < 60; ++step) {
      if (random() % 2 == 0 && handle_->Free() > 0) {
        if (random() % 2 == 0) {
          AskTwice(std::vector<float>(random() % 50, 1.0f));
        } else {
          AskStrings({{"text"}, {std::string(random() % 300, 's')}});
        }
      }
      if (random() % 2 == 0) worker.Act();
      Turn();
    }
    process_->Close();
    handle_->OnProcessEnded(9);
    Turn();
    for (const auto& asked : asked_) ASSERT_EQ(asked->outcomes, 1) << "seed " << seed;
    ASSERT_EQ(handle_->slots_out(), 0u) << "seed " << seed;
    ASSERT_EQ(ends_, 1) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tensord::fleet
