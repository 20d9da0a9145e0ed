// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/testing/fake_process.h"

#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "engine/testing/graph_bytes.h"
#include "gtest/gtest.h"

namespace tensord::fleet {
namespace {

template <typename T>
T Must(absl::StatusOr<T> value) {
  TENSORD_CHECK(value.ok());
  return *std::move(value);
}

channel::MappedSegment MapOrDie(int fd, channel::MappedSegment::Access access) {
  return Must(channel::MappedSegment::Map(fd, access));
}

uint64_t Align(uint64_t bytes) { return (bytes + 63) & ~uint64_t{63}; }

std::string EndpointEntry(uint32_t field, std::string_view name, tensor::DType dtype) {
  return engine::MapEntry(
      field, name,
      engine::TensorInfoBytes(name, static_cast<uint64_t>(dtype), engine::ShapeBytes({-1})));
}

std::string SignatureMap() {
  const std::string strings =
      EndpointEntry(1, "s", tensor::DType::kString) + EndpointEntry(2, "s", tensor::DType::kString);
  const std::string twice = EndpointEntry(1, "x", tensor::DType::kFloat) +
                            EndpointEntry(2, "done", tensor::DType::kBool) +
                            EndpointEntry(2, "y", tensor::DType::kFloat);
  return engine::MapEntry(1, "strings", strings) + engine::MapEntry(1, "twice", twice);
}

}  // namespace

FakeProcess::FakeProcess(channel::PacketSocket socket, int request_fd, int response_fd,
                         uint64_t incarnation)
    : socket_(std::move(socket)),
      incarnation_(incarnation),
      request_(MapOrDie(request_fd, channel::MappedSegment::Access::kRead)),
      response_(MapOrDie(response_fd, channel::MappedSegment::Access::kReadWrite)) {}

FakeProcess::Pair FakeProcess::Make(uint32_t executors, uint64_t segment_bytes) {
  auto [ours, theirs] = Must(channel::PacketSocket::Pair());
  ours.SetNonBlocking();
  theirs.SetNonBlocking();
  channel::LoadRecord load;
  load.model = "half";
  load.version = 3;
  load.executors = executors;
  WorkerParts parts{.key = {.model = "half", .version = 3},
                    .incarnation = 77,
                    .load = std::move(load),
                    .channel = std::move(ours),
                    .request = Must(channel::RequestSegment::Create(segment_bytes)),
                    .response = Must(channel::ResponseSegment::Create(segment_bytes))};
  auto process = std::make_unique<FakeProcess>(std::move(theirs), parts.request.fd(),
                                               parts.response.fd(), parts.incarnation);
  return {std::move(parts), std::move(process)};
}

void FakeProcess::Say(const channel::ToFront& record) {
  SayBytes(channel::Encode(incarnation_, record));
}

void FakeProcess::SayBytes(std::string_view bytes, const std::vector<int>& descriptors) {
  if (socket_.has_value()) (void)socket_->Send(bytes, descriptors);
}

std::optional<channel::ToWorker> FakeProcess::Hear() {
  if (!socket_.has_value()) return std::nullopt;
  absl::StatusOr<channel::Packet> packet = socket_->Receive(limits::kRecordBytesMax, 2);
  front_gone_ = front_gone_ || absl::IsUnavailable(packet.status());
  if (!packet.ok()) return std::nullopt;
  descriptors_ = std::move(packet->descriptors);
  absl::StatusOr<channel::ToWorker> record = channel::DecodeToWorker(packet->bytes, incarnation_);
  EXPECT_TRUE(record.ok()) << record.status();
  if (!record.ok()) return std::nullopt;
  return *std::move(record);
}

template <typename Record>
Record FakeProcess::HearA() {
  std::optional<channel::ToWorker> record = Hear();
  if (!record.has_value() || !std::holds_alternative<Record>(*record)) {
    ADD_FAILURE() << "the front said nothing, or something else";
    return {};
  }
  return std::get<Record>(*std::move(record));
}
template channel::LoadRecord FakeProcess::HearA();
template channel::RunRecord FakeProcess::HearA();
template channel::CollectRecord FakeProcess::HearA();
template channel::StopRecord FakeProcess::HearA();
template channel::SegmentsRecord FakeProcess::HearA();
template channel::SealRecord FakeProcess::HearA();

std::vector<channel::Run> FakeProcess::HearRuns() {
  std::vector<channel::Run> runs;
  while (std::optional<channel::ToWorker> record = Hear()) {
    auto* heard = std::get_if<channel::RunRecord>(&*record);
    if (heard == nullptr) continue;
    for (channel::Run& run : heard->runs) {
      size_t next = 0;
      if (run.own_request_segment) {
        own_[run.id].request =
            MapOrDie(descriptors_.at(next++).get(), channel::MappedSegment::Access::kRead);
      }
      if (run.own_response_segment) {
        own_[run.id].response =
            MapOrDie(descriptors_.at(next).get(), channel::MappedSegment::Access::kReadWrite);
      }
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

std::string FakeProcess::InfoBytes() {
  engine::ModelInfo info;
  info.signature_def_map = SignatureMap();
  info.runtime_version = "2.21.0";
  return engine::Serialize(info);
}

uint64_t FakeProcess::WriteInfo(std::string_view info_bytes) {
  std::memcpy(Must(response_.Write(0, info_bytes.size())).data(), info_bytes.data(),
              info_bytes.size());
  return info_bytes.size();
}

void FakeProcess::SayLoaded() {
  Say(channel::HelloRecord{.pid = 1});
  Say(channel::LoadedRecord{.info_bytes = WriteInfo(InfoBytes())});
}

const channel::MappedSegment& FakeProcess::RequestOf(const channel::Run& run) const {
  return run.own_request_segment ? *own_.at(run.id).request : request_;
}

std::span<std::byte> FakeProcess::Region(const channel::Run& run) {
  const channel::MappedSegment& to =
      run.own_response_segment ? *own_.at(run.id).response : response_;
  return Must(to.Write(run.response_offset, run.response_bytes));
}

channel::Completion FakeProcess::Outputs(const channel::Run& run, channel::MappedSegment& to,
                                         uint64_t offset, uint64_t room) {
  const channel::TensorDescriptor& input = run.inputs.at(0);
  const std::span<const std::byte> bytes = Must(RequestOf(run).Read(input.offset, input.bytes));
  channel::Completion completion{.id = run.id, .run_nanoseconds = 1000};
  const uint64_t needed = Align(input.bytes) + (run.signature == kTwice ? 64 : 0);
  if (needed > room) {
    completion.held = true;
    completion.held_bytes = needed;
    held_[run.id] = run;
    return completion;
  }
  channel::TensorDescriptor output = input;
  output.offset = offset;
  if (run.signature == kTwice) {
    completion.outputs.push_back({.dtype = tensor::DType::kBool, .offset = offset, .bytes = 1});
    Must(to.Write(offset, 1))[0] = std::byte{1};
    output.offset += 64;
  }
  const std::span<std::byte> out = Must(to.Write(output.offset, output.bytes));
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  if (run.signature == kTwice) {
    for (size_t i = 0; i + sizeof(float) <= out.size(); i += sizeof(float)) {
      float value = 0;
      std::memcpy(&value, out.data() + i, sizeof(value));
      value *= 2;
      std::memcpy(out.data() + i, &value, sizeof(value));
    }
  }
  completion.outputs.push_back(output);
  return completion;
}

channel::Completion FakeProcess::Answer(const channel::Run& run) {
  channel::MappedSegment& to = run.own_response_segment ? *own_.at(run.id).response : response_;
  return Outputs(run, to, run.response_offset, run.response_bytes);
}

void FakeProcess::TakeSegments() {
  using Access = channel::MappedSegment::Access;
  HearA<channel::SegmentsRecord>();
  if (descriptors_.size() != 2) return;
  request_ = MapOrDie(descriptors_[0].get(), Access::kRead);
  response_ = MapOrDie(descriptors_[1].get(), Access::kReadWrite);
  Say(channel::SegmentsTakenRecord{});
}

void FakeProcess::SayAnswers(std::vector<channel::Completion> completions) {
  Say(channel::CompletionRecord{std::move(completions)});
}

channel::Completion FakeProcess::Collected(const channel::CollectRecord& collect) {
  const channel::Run run = held_.at(collect.id);
  channel::MappedSegment segment =
      MapOrDie(descriptors_.at(0).get(), channel::MappedSegment::Access::kReadWrite);
  return Outputs(run, segment, 0, collect.response_bytes);
}

}  // namespace tensord::fleet
