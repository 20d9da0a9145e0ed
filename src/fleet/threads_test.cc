// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// For ThreadSanitizer: a handle and an honest worker as threads on one mapping, and a fleet whose
// control loop is not its workers' home loop.

#include <sys/mman.h>

#include <cstring>
#include <random>
#include <thread>

#include "base/limits.h"
#include "fleet/control_io.h"
#include "fleet/fleet.h"
#include "fleet/testing/worker_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::fleet {
namespace {

// An executor that touches the very addresses the front does.
class SameMappingWorker {
 public:
  SameMappingWorker(const channel::PacketSocket& socket, const WorkerParts& parts)
      : socket_(socket),
        incarnation_(parts.incarnation),
        request_(parts.request.Bytes(0, parts.request.size())),
        response_(const_cast<std::byte*>(parts.response.shared()), parts.response.size()) {
    EXPECT_EQ(mprotect(response_.data(), response_.size(), PROT_READ | PROT_WRITE), 0);
  }

  // Until the front's end closes.
  void Serve() {
    Say(channel::HelloRecord{});
    while (true) {
      const auto packet = socket_.Receive(limits::kRecordBytesMax, 2);
      if (!packet.ok()) return;
      const auto record = channel::DecodeToWorker(packet->bytes, incarnation_);
      ASSERT_TRUE(record.ok()) << record.status();
      if (std::holds_alternative<channel::LoadRecord>(*record)) SayLoaded();
      if (std::holds_alternative<channel::StopRecord>(*record)) return;
      const auto* runs = std::get_if<channel::RunRecord>(&*record);
      if (runs == nullptr) continue;
      channel::CompletionRecord answers;
      for (const channel::Run& run : runs->runs) answers.completions.push_back(Twice(run));
      Say(answers);
    }
  }

 private:
  void Say(const channel::ToFront& record) {
    (void)socket_.Send(channel::Encode(incarnation_, record));
  }
  void SayLoaded() {
    const std::string info = FakeProcess::InfoBytes();
    std::memcpy(response_.data(), info.data(), info.size());
    Say(channel::LoadedRecord{.info_bytes = info.size()});
  }
  channel::Completion Twice(const channel::Run& run) {
    channel::TensorDescriptor y = run.inputs.at(0);
    const std::byte* in = request_.data() + y.offset;
    y.offset = run.response_offset + 64;
    for (uint64_t at = 0; at < y.bytes; at += sizeof(float)) {
      float value = 0;
      std::memcpy(&value, in + at, sizeof(value));
      value *= 2;
      std::memcpy(response_.data() + y.offset + at, &value, sizeof(value));
    }
    response_[run.response_offset] = std::byte{1};
    const channel::TensorDescriptor done{
        .dtype = tensor::DType::kBool, .offset = run.response_offset, .bytes = 1};
    return {.id = run.id, .outputs = {done, y}};
  }

  const channel::PacketSocket& socket_;
  const uint64_t incarnation_;
  const std::span<const std::byte> request_;
  const std::span<std::byte> response_;
};

using ThreadsTest = WorkerFixture;

TEST_F(ThreadsTest, HandleAndWorkerNeverTouchTheSameBytesUnordered) {
  loop_ = *loop::EventLoop::Create();
  auto sockets = *channel::PacketSocket::Pair();
  FakeProcess::Pair pair = FakeProcess::Make(2, 1 << 20);
  sockets.first.SetNonBlocking();
  pair.parts.channel = std::move(sockets.first);
  SameMappingWorker worker(sockets.second, pair.parts);
  std::vector<std::thread> executors;
  executors.emplace_back([&worker] { worker.Serve(); });
  handle_ =
      std::make_unique<WorkerHandle>(*loop_, std::move(pair.parts), this, [this] { ++kills_; });
  while (loads_ == 0) loop_->RunOnce(absl::InfiniteFuture());

  std::mt19937 random(3);
  size_t submitted = 0;
  const auto answered = [&] {
    size_t count = 0;
    for (const auto& asked : asked_) count += static_cast<size_t>(asked->outcomes);
    return count;
  };
  while (submitted < 500) {
    for (; handle_->Free() > 0 && submitted < 500; ++submitted) {
      AskTwice(std::vector<float>(1 + random() % 500, static_cast<float>(submitted)));
    }
    loop_->RunOnce(absl::InfiniteFuture());
  }
  while (answered() < submitted) loop_->RunOnce(absl::InfiniteFuture());
  for (size_t i = 0; i < asked_.size(); ++i) {
    const std::vector<float> values = FloatsOf(*asked_[i]);
    ASSERT_THAT(values, ::testing::Each(2 * static_cast<float>(i)));
    ASSERT_EQ(values.size(), asked_[i]->values.size());
  }
  EXPECT_EQ(handle_->slots_out(), 0u);
  EXPECT_EQ(kills_, 0);
  handle_.reset();  // Closes the channel, and with it ends the thread.
  for (std::thread& executor : executors) executor.join();
}

// A value that another thread gives and the test's thread waits for, by a loop of its own.
template <typename T>
class Awaited {
 public:
  void Set(T value) {
    ASSERT_TRUE(
        loop_->Post([this, value = std::move(value)]() mutable { value_ = std::move(value); }));
  }
  T Get() {
    while (!value_.has_value()) loop_->RunOnce(absl::InfiniteFuture());
    return *std::move(value_);
  }

 private:
  std::unique_ptr<loop::EventLoop> loop_ = *loop::EventLoop::Create();
  std::optional<T> value_;
};

class AwaitedObserver final : public WorkerObserver {
 public:
  AwaitedObserver(Awaited<WorkerHandle*>* loaded, Awaited<End>* ended)
      : loaded_(loaded), ended_(ended) {}
  void OnLoaded(WorkerHandle& worker, const engine::ModelInfo&) override { loaded_->Set(&worker); }
  void OnFree() override {}
  void OnEnded(WorkerHandle*, End end, const absl::Status&) override { ended_->Set(end); }

 private:
  Awaited<WorkerHandle*>* const loaded_;
  Awaited<End>* const ended_;
};

channel::ControlRecord HearControl(const channel::PacketSocket& socket,
                                   std::vector<base::UniqueFd>* descriptors = nullptr) {
  auto packet = *socket.Receive(sizeof(channel::ControlRecord), 5);
  channel::ControlRecord record;
  std::memcpy(&record, packet.bytes.data(), sizeof(record));
  if (descriptors != nullptr) *descriptors = std::move(packet.descriptors);
  return record;
}

channel::ControlRecord Control(channel::ControlKind kind, int pid, uint64_t request = 0) {
  channel::ControlRecord record;
  record.kind = kind;
  record.pid = pid;
  record.request = request;
  return record;
}

TEST(FleetThreads, AWorkerLivesOnAnotherLoopThanItsFleet) {
  const auto control = *loop::EventLoop::Create();
  const auto home = *loop::EventLoop::Create();
  auto to_supervisor = *channel::PacketSocket::Pair();
  auto to_zygote = *channel::PacketSocket::Pair();
  std::unique_ptr<Fleet> fleet;
  SupervisorClient supervisor(
      *control, base::UniqueFd(dup(to_supervisor.first.fd())),
      [&](const channel::ControlRecord& record, base::UniqueFd fd) {
        fleet->OnSupervisor(record, std::move(fd));
      },
      [] {});
  fleet = std::make_unique<Fleet>(*control, &supervisor, [](const WorkerKey&, std::string_view) {});
  std::thread control_thread([&] { control->Run(); });
  std::thread home_thread([&] { home->Run(); });
  Awaited<WorkerHandle*> loaded;
  Awaited<WorkerObserver::End> ended;
  const WorkerKey key{.model = "half", .version = 1};
  ASSERT_TRUE(control->Post([&] {
    LaunchSpec spec;
    spec.key = key;
    fleet->Launch(std::move(spec), *home, std::make_unique<AwaitedObserver>(&loaded, &ended));
  }));

  const channel::PacketSocket& asked = to_supervisor.second;
  EXPECT_EQ(HearControl(asked).kind, channel::ControlKind::kStartZygote);
  ASSERT_TRUE(
      SendControl(asked, Control(channel::ControlKind::kZygoteStarted, 100), {to_zygote.first.fd()})
          .ok());
  std::vector<base::UniqueFd> ends;
  const channel::ControlRecord fork = HearControl(to_zygote.second, &ends);
  ASSERT_EQ(ends.size(), 5u);
  FakeProcess process(channel::PacketSocket(std::move(ends[0])), ends[1].get(), ends[2].get(),
                      fork.incarnation);
  ASSERT_TRUE(
      SendControl(to_zygote.second, Control(channel::ControlKind::kForked, 200, fork.request))
          .ok());
  process.SayLoaded();
  WorkerHandle* handle = loaded.Get();
  process.HearA<channel::LoadRecord>();

  Awaited<RunOutcome> outcome;
  const std::vector<float> values = {3};
  ASSERT_TRUE(home->Post([&] {
    const tensor::TensorView view{tensor::DType::kFloat, {1}, std::as_bytes(std::span(values))};
    handle->Submit({.signature = FakeProcess::kTwice, .inputs = {{view}}},
                   [&](RunOutcome done) { outcome.Set(std::move(done)); });
  }));
  const auto runs = process.HearA<channel::RunRecord>();
  ASSERT_EQ(runs.runs.size(), 1u);
  process.SayAnswers({process.Answer(runs.runs[0])});
  EXPECT_TRUE(outcome.Get().status.ok());

  ASSERT_TRUE(control->Post([&] { fleet->Stop(key); }));
  process.HearA<channel::StopRecord>();
  process.Close();
  ASSERT_TRUE(SendControl(asked, Control(channel::ControlKind::kProcessEnded, 200)).ok());
  EXPECT_EQ(ended.Get(), WorkerObserver::End::kStopped);
  home->Stop();
  home_thread.join();
  control->Stop();
  control_thread.join();
  fleet.reset();
}

}  // namespace
}  // namespace tensord::fleet
