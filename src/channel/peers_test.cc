// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// Both ends of a channel as threads on one mapping: honest ones, for ThreadSanitizer, which cannot
// see across processes nor across two mappings of one memory; and a hostile one that keeps writing.

#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "base/limits.h"
#include "channel/packet_socket.h"
#include "channel/record.h"
#include "channel/segment.h"
#include "channel/slot_allocator.h"
#include "gtest/gtest.h"
#include "tensor/string_layout.h"
#include "tensor/tensor.h"

#if defined(TENSORD_TSAN)
#define TENSORD_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TENSORD_UNDER_TSAN 1
#endif
#endif

namespace tensord::channel {
namespace {

constexpr uint64_t kIncarnation = 3;
constexpr uint64_t kBytes = 64 * 1024;

// The front's own mapping of a response segment, made writable: what the other end would have, at
// the same address.
std::span<std::byte> WorkerView(const ResponseSegment& segment) {
  auto* data = const_cast<std::byte*>(segment.shared());
  EXPECT_EQ(mprotect(data, segment.size(), PROT_READ | PROT_WRITE), 0);
  return {data, segment.size()};
}

// Answers each run with its bytes plus one, until it is told to stop.
void HonestExecutor(const PacketSocket& socket, std::span<const std::byte> request,
                    std::span<std::byte> response) {
  while (true) {
    const auto packet = socket.Receive(limits::kRecordBytesMax, 0);
    if (!packet.ok()) return;
    const auto record = DecodeToWorker(packet->bytes, kIncarnation);
    ASSERT_TRUE(record.ok()) << record.status();
    if (std::holds_alternative<StopRecord>(*record)) return;
    CompletionRecord answer;
    for (const Run& run : std::get<RunRecord>(*record).runs) {
      const TensorDescriptor& input = run.inputs.at(0);
      for (uint64_t i = 0; i < input.bytes; ++i) {
        response[run.response_offset + i] =
            static_cast<std::byte>(std::to_integer<unsigned>(request[input.offset + i]) + 1);
      }
      TensorDescriptor output = input;
      output.offset = run.response_offset;
      answer.completions.push_back({.id = run.id, .outputs = {output}});
    }
    ASSERT_TRUE(socket.Send(Encode(kIncarnation, ToFront(answer))).ok());
  }
}

struct InFlight {
  Slot request;
  Slot response;
  std::byte value;
};

// The front's half of the honest talk.
class HonestFront {
 public:
  HonestFront(const PacketSocket& socket, const RequestSegment& request,
              const ResponseSegment& response)
      : socket_(socket), request_(request), response_(response) {}

  void Send(uint64_t id, uint64_t bytes) {
    std::optional<Slot> input = requests_.Take(bytes);
    std::optional<Slot> output = responses_.Take(bytes);
    ASSERT_TRUE(input.has_value() && output.has_value());
    const auto value = static_cast<std::byte>(id * 31);
    std::memset(request_.Bytes(input->offset(), bytes).data(), std::to_integer<int>(value), bytes);
    RunRecord record;
    record.runs.push_back({.id = id,
                           .response_offset = output->offset(),
                           .response_bytes = output->bytes(),
                           .inputs = {{.dtype = tensor::DType::kUint8,
                                       .shape = {static_cast<int64_t>(bytes)},
                                       .offset = input->offset(),
                                       .bytes = bytes}}});
    in_flight_.emplace(id, InFlight{*std::move(input), *std::move(output), value});
    ASSERT_TRUE(socket_.Send(Encode(kIncarnation, ToWorker(record))).ok());
  }

  void Receive() {
    const auto packet = socket_.Receive(limits::kRecordBytesMax, 0);
    ASSERT_TRUE(packet.ok()) << packet.status();
    const auto record = DecodeToFront(packet->bytes, kIncarnation);
    ASSERT_TRUE(record.ok()) << record.status();
    for (const Completion& completion : std::get<CompletionRecord>(*record).completions) {
      const auto at = in_flight_.find(completion.id);
      ASSERT_NE(at, in_flight_.end());
      const TensorDescriptor& output = completion.outputs.at(0);
      tensor::Buffer copy(output.bytes);
      ASSERT_TRUE(CopyFromShared(copy.bytes(), response_, output.offset).ok());
      const auto expected = static_cast<std::byte>(std::to_integer<unsigned>(at->second.value) + 1);
      for (const std::byte byte : copy.bytes()) ASSERT_EQ(byte, expected);
      in_flight_.erase(at);
    }
  }

  size_t in_flight() const { return in_flight_.size(); }
  uint64_t slots_out() const { return requests_.slots_out() + responses_.slots_out(); }

 private:
  const PacketSocket& socket_;
  const RequestSegment& request_;
  const ResponseSegment& response_;
  SlotAllocator requests_{kBytes};
  SlotAllocator responses_{kBytes};
  std::map<uint64_t, InFlight> in_flight_;
};

TEST(Peers, HonestOnesNeverTouchTheSameBytesUnordered) {
  auto pair = PacketSocket::Pair();
  const auto request = RequestSegment::Create(kBytes);
  const auto response = ResponseSegment::Create(kBytes);
  ASSERT_TRUE(pair.ok() && request.ok() && response.ok());
  const std::span<const std::byte> inputs = request->Bytes(0, kBytes);
  const std::span<std::byte> outputs = WorkerView(*response);
  std::vector<std::thread> executors;
  for (int i = 0; i < 2; ++i) {
    executors.emplace_back([&] { HonestExecutor(pair->second, inputs, outputs); });
  }
  HonestFront front(pair->first, *request, *response);
  std::mt19937 random(11);
  for (uint64_t id = 1; id <= 1000; ++id) {
    front.Send(id, 1 + random() % 3000);
    while (front.in_flight() >= 4 && !HasFatalFailure()) front.Receive();
    if (HasFatalFailure()) break;
  }
  while (front.in_flight() > 0 && !HasFatalFailure()) front.Receive();
  EXPECT_EQ(front.slots_out(), 0u);
  for (size_t i = 0; i < executors.size(); ++i) {
    EXPECT_TRUE(pair->first.Send(Encode(kIncarnation, ToWorker(StopRecord{}))).ok());
  }
  for (std::thread& executor : executors) executor.join();
}

#ifndef TENSORD_UNDER_TSAN  // The race is the attack.

// A string table that is right at one moment and wrong at the next.
void Scribble(std::span<std::byte> bytes, uint64_t elements, const std::atomic<bool>& stop) {
  std::mt19937_64 random(5);
  const uint64_t payload = bytes.size() - tensor::PackedStringBytes(elements, 0);
  const std::string text(payload / elements, 'x');
  while (!stop.load()) {
    tensor::StringWriter writer(bytes, elements);
    for (uint64_t i = 0; i < elements; ++i) writer.Add(text);
    for (int i = 0; i < 8; ++i) {
      const uint64_t evil = random() % 2 == 0 ? random() : random() % payload;
      std::memcpy(bytes.data() + random() % (elements + 1) * 8, &evil, sizeof(evil));
    }
  }
}

TEST(Peers, AHostileOneCannotMakeACheckedCopyLie) {
  constexpr uint64_t kElements = 8;
  const uint64_t table_bytes = tensor::PackedStringBytes(kElements, 800);
  const auto response = ResponseSegment::Create(kBytes);
  ASSERT_TRUE(response.ok());
  const auto worker = MappedSegment::Map(response->fd(), MappedSegment::Access::kReadWrite);
  ASSERT_TRUE(worker.ok());
  const std::span<std::byte> shared = *worker->Write(0, table_bytes);
  std::atomic<bool> stop{false};
  std::thread hostile([&] { Scribble(shared, kElements, stop); });

  uint64_t accepted = 0;
  uint64_t refused = 0;
  for (int i = 0; (i < 20'000 || accepted == 0 || refused == 0) && i < 10'000'000; ++i) {
    tensor::Buffer copy(table_bytes);
    ASSERT_TRUE(CopyFromShared(copy.bytes(), *response, 0).ok());
    const auto strings = tensor::StringReader::Open(copy.bytes(), kElements);
    if (!strings.ok()) {
      ++refused;
      continue;
    }
    ++accepted;
    uint64_t total = 0;
    for (uint64_t at = 0; at < strings->size(); ++at) {
      for (const char letter : (*strings)[at]) total += letter == 'x' ? 1 : 0;
    }
    ASSERT_EQ(total, strings->payload().size());
  }
  stop.store(true);
  hostile.join();
  EXPECT_GT(accepted, 0u);
  EXPECT_GT(refused, 0u);
}

#endif

}  // namespace
}  // namespace tensord::channel
