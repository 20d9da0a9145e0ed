// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "base/limits.h"
#include "channel/packet_socket.h"
#include "channel/record.h"
#include "channel/segment.h"
#include "channel/slot_allocator.h"
#include "engine/model_info.h"
#include "fleet/pack.h"
#include "fleet/request_area.h"
#include "fleet/segment_demand.h"
#include "fleet/unpack.h"
#include "fleet/worker.h"
#include "fleet/worker_key.h"
#include "loop/event_loop.h"
#include "tensor/signature.h"

namespace tensord::fleet {

class WorkerHandle;

// Who started a worker hears what becomes of it.
// Threads: the worker's home loop. None of these runs inside a call to the handle.
class WorkerObserver {
 public:
  virtual ~WorkerObserver() = default;
  // Loaded and warm: it takes runs from now on.
  virtual void OnLoaded(WorkerHandle& worker, const engine::ModelInfo& info) = 0;
  // Free() may have grown.
  virtual void OnFree() = 0;
  // The worker is of no more use: it said why its model does not load (kLoadFailed), it died or
  // broke the protocol (kDied), or it ended as it was told (kStopped). All its runs have their
  // outcome. Runs once; the handle may be destroyed inside the call.
  enum class End : uint8_t { kLoadFailed, kDied, kStopped };
  // `worker` is null when not even its channel could be made.
  virtual void OnEnded(WorkerHandle* worker, End end, const absl::Status& reason) = 0;
};

// What a handle is made of; all of one incarnation.
struct WorkerParts {
  WorkerKey key;
  uint64_t incarnation = 0;
  channel::LoadRecord load;
  absl::Duration load_wait_max = limits::kLoadWaitMax;  // Until it is loaded and warm.
  channel::PacketSocket channel;                        // Non-blocking.
  channel::RequestSegment request;
  channel::ResponseSegment response;
};

// The front's end of a channel: one worker process, from its first word to its last.
//
// Threads: the home loop. Owns: channel, segments, slots and the runs that are out.
// Lifetime: loop and observer outlive it. Every run has exactly one outcome, at the latest from the
// destructor's deferred calls.
class WorkerHandle final : public Worker {
 public:
  // `kill` asks for SIGKILL, by the supervisor; it may run any number of times.
  WorkerHandle(loop::EventLoop& loop, WorkerParts parts, WorkerObserver* observer,
               absl::AnyInvocable<void()> kill);
  ~WorkerHandle() override;

  // Worker.
  int Free() const override;
  int Executors() const override { return static_cast<int>(parts_.load.executors); }
  uint64_t CopiedBytes() const override { return copied_bytes_; }
  ReceivePlace LeaseForReceive(uint64_t bytes) override;
  void Submit(RunSpec spec, RunDone done) override;
  void Abandon(uint64_t name, absl::Time kill_at) override;

  // Asks the worker to give up all that its runs do not need. `done` hears what came of it, never
  // inside this call; not at all when the worker ends, or is told to,
  // meanwhile.
  // REQUIRES: after OnLoaded, once, and no run is out; none is submitted until `done`.
  using SealDone = absl::AnyInvocable<void(const channel::SealedRecord&)>;
  void Seal(SealDone done);

  // No more runs; the worker finishes what it has and ends. Killed when it has not ended kStopGrace
  // after its last run's deadline.
  void Stop();

  // Notices of the supervisor, which may come at any time after the fork.
  void OnProcessEnded(int wait_status);
  void OnProcessStopped();
  // The zygote could not make the process at all.
  void OnForkFailed(const absl::Status& status);

  const WorkerKey& key() const { return parts_.key; }
  // Of both standard segments, by runs in flight.
  uint64_t slots_out() const { return request_->slots_out() + response_slots_->slots_out(); }

 private:
  // kDying: nothing more is expected of it but its end.
  enum class State : uint8_t { kStarting, kLoading, kReady, kDying, kEnded };

  struct OutRun {
    int signature = 0;
    std::vector<int> more_signatures;
    RunDone done;
    absl::Time deadline;
    absl::Time kill_at;  // It must not run on then.
    uint64_t name = 0;   // RunSpec's.
    bool abandoned = false;
    channel::Slot request_slot;                    // Of what was packed.
    std::shared_ptr<RequestArea::Lease> received;  // Of what lay in its place already.
    channel::Slot response_slot;
    // Of this run alone, when its tensors do not fit the standard segments.
    std::optional<channel::RequestSegment> own_request;
    std::optional<channel::ResponseSegment> own_response;
    Region region;
    bool collecting = false;
    bool retained = false;
  };

  // Sending.
  std::vector<std::optional<uint64_t>> FindReceived(const RunSpec& spec, OutRun* out) const;
  absl::StatusOr<PackedRun> PlaceRequest(const RunSpec& spec, OutRun* out, channel::Run* run);
  absl::Status PlaceResponse(OutRun* out, channel::Run* run);
  absl::StatusOr<Unpacked> UnpackOf(const OutRun& out, const channel::Completion& completion) const;
  absl::Status CheckOwnBytes(uint64_t more) const;
  void SendAlone(const channel::Run& run);
  void FlushSoon();
  void Flush();
  void SendRecord(const channel::ToWorker& record, const std::vector<int>& descriptors = {});

  // Other standard segments (worker_segments.cc).
  void WatchDemand();
  void RenewWhenIdle();
  absl::Status Renew(const SegmentSizes& sizes);
  void OnSegmentsTaken();
  void OnDemandTimer();
  SegmentSizes Sizes() const { return {request_->size(), parts_.response.size()}; }

  // Receiving.
  void OnReadable();
  void OnRecord(channel::ToFront record);
  void OnHello();
  void OnLoadedRecord(const channel::LoadedRecord& record);
  void OnSealed(const channel::SealedRecord& record);
  void OnCompletion(channel::Completion completion);
  absl::StatusOr<channel::ResponseSegment> HeldSegment(uint64_t bytes) const;
  void Collect(uint64_t id, OutRun* out, uint64_t bytes);
  void Finish(uint64_t id, RunOutcome outcome, bool quarantine);

  // Ending.
  void OnDying();
  void Violation(std::string_view what);
  // Whose fault it may be; as RunOutcome has it.
  enum class Cause : uint8_t { kOurs, kRun, kUnknown };
  void Kill(std::string_view why, Cause cause = Cause::kOurs);
  void End(WorkerObserver::End end, const absl::Status& reason);
  void FailRuns(const absl::Status& status, Cause cause);
  void KeepWatch();
  void Watch();
  void CheckTimes(absl::Time now);
  std::string Name() const;

  loop::EventLoop& loop_;
  WorkerParts parts_;
  WorkerObserver* const observer_;
  absl::AnyInvocable<void()> kill_;

  State state_ = State::kStarting;
  loop::EventLoop::Watch watch_;
  loop::TimerId watchdog_ = 0;  // None while nothing is waited for: an idle worker wakes nobody.
  absl::Time watch_due_;
  int heartbeats_ = 0;  // Since the last look at the times.
  absl::Time started_;
  absl::Time last_heard_;
  bool stop_asked_ = false;
  absl::Time stop_by_ = absl::InfiniteFuture();
  std::string why_killed_;
  channel::DyingRecord last_words_;
  SealDone seal_done_;  // While the answer to a SealRecord is waited for.
  absl::Time seal_sent_ = absl::InfiniteFuture();

  std::shared_ptr<RequestArea> request_;
  std::unique_ptr<channel::SlotAllocator> response_slots_;
  const SegmentSizes first_sizes_;
  SegmentDemand demand_;
  std::optional<SegmentSizes> renewal_;  // No run is sent until the segments are of these sizes.
  absl::Time renewal_sent_ = absl::InfiniteFuture();  // Until the worker has taken them.
  loop::TimerId demand_timer_ = 0;  // While the segments are larger than at first.
  tensor::SignatureList signatures_;
  std::vector<uint64_t> response_bytes_;  // By signature: the largest seen, for the next grant.
  std::map<uint64_t, OutRun> out_;
  std::vector<channel::Run> pending_;  // Submitted in this iteration, not sent yet.
  bool flush_wanted_ = false;
  uint64_t last_run_ = 0;
  uint64_t copied_bytes_ = 0;
  // What deferred tasks hold: empty once this has gone.
  std::shared_ptr<WorkerHandle*> self_;
};

}  // namespace tensord::fleet
