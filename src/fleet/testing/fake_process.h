// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "channel/packet_socket.h"
#include "channel/record.h"
#include "channel/segment.h"
#include "fleet/worker_handle.h"

namespace tensord::fleet {

// A worker process that the test plays: the other end of a WorkerHandle's channel. It does nothing
// by itself and may break every rule.
//
// Its model has two signatures: 0, "strings", gives a string tensor back; 1, "twice", doubles
// float vectors and says in a second output, a bool, that it did.
// Threads: one.
class FakeProcess {
 public:
  static constexpr int kStrings = 0;
  static constexpr int kTwice = 1;

  // As a zygote would hand them over. The descriptors of the segments are not kept.
  FakeProcess(channel::PacketSocket socket, int request_fd, int response_fd, uint64_t incarnation);

  // A worker and the parts of the handle that talks to it.
  struct Pair {
    WorkerParts parts;
    std::unique_ptr<FakeProcess> process;
  };
  static Pair Make(uint32_t executors, uint64_t segment_bytes = 64 * 1024);

  void Say(const channel::ToFront& record);
  void SayBytes(std::string_view bytes, const std::vector<int>& descriptors = {});
  // The next record from the front; none when none waits.
  std::optional<channel::ToWorker> Hear();
  // The next record, which must be of this kind; an empty one (and a failed test) if it is not.
  template <typename Record>
  Record HearA();
  // All runs that wait to be heard, in order.
  std::vector<channel::Run> HearRuns();
  bool front_gone() const { return front_gone_; }

  // Hello, then the load record, then "loaded".
  void SayLoaded();
  // The model's description at the start of the response segment.
  uint64_t WriteInfo(std::string_view info_bytes);
  static std::string InfoBytes();

  // The right answer to a run: outputs written, not said. `held` when they do not fit.
  channel::Completion Answer(const channel::Run& run);
  // Maps the segments that came with the SegmentsRecord it heard, and says so.
  void TakeSegments();
  void SayAnswers(std::vector<channel::Completion> completions);
  // Answers what the last Answer held back, into the segment that came with the CollectRecord.
  channel::Completion Collected(const channel::CollectRecord& collect);
  // Where the run's outputs go.
  std::span<std::byte> Region(const channel::Run& run);

  // Dies: the front reads the end of the channel.
  void Close() { socket_.reset(); }
  const channel::PacketSocket& socket() const { return *socket_; }
  uint64_t incarnation() const { return incarnation_; }

 private:
  channel::Completion Outputs(const channel::Run& run, channel::MappedSegment& to, uint64_t offset,
                              uint64_t room);
  const channel::MappedSegment& RequestOf(const channel::Run& run) const;

  struct OwnSegments {
    std::optional<channel::MappedSegment> request;
    std::optional<channel::MappedSegment> response;
  };

  std::optional<channel::PacketSocket> socket_;
  const uint64_t incarnation_;
  channel::MappedSegment request_;
  channel::MappedSegment response_;
  bool front_gone_ = false;
  std::vector<base::UniqueFd> descriptors_;  // That came with the last record.
  std::map<uint64_t, OwnSegments> own_;
  std::map<uint64_t, channel::Run> held_;
};

}  // namespace tensord::fleet
