// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "channel/packet_socket.h"
#include "channel/record.h"
#include "channel/segment.h"
#include "engine/engine.h"
#include "worker/confinement.h"
#include "worker/runner.h"
#include "worker/wake_event.h"

namespace tensord::worker {

// How a worker process ends.
enum class ExitCode : int {
  kDone = 0,            // Stopped by the front, or the front closed the channel.
  kLoadFailed = 1,      // Said so in a LoadFailedRecord before.
  kProtocolBroken = 2,  // The front sent a record that is none.
};

// The worker's end of a channel: loads one model and answers runs until it is told to stop or the
// front is gone.
//
// Threads: Serve's thread watches the channel and beats; E executors block in receive on the one
// socket, where the kernel hands each record to one of them. The loader becomes the first executor,
// or, where a model has two widths, waits for them.
class Loop {
 public:
  struct Ends {
    channel::PacketSocket channel;
    channel::MappedSegment request;
    channel::MappedSegment response;
    uint64_t incarnation = 0;
  };

  // Lifetime: engine and confinement outlive the loop.
  Loop(Ends ends, engine::Engine* engine, Confinement* confinement);
  // Waits for every thread: only for tests, whose runs end. A process leaves by _exit after Serve.
  ~Loop();

  // Returns as soon as it is known how the process must end, even while runs are on their way.
  ExitCode Serve();

 private:
  using Descriptors = std::vector<base::UniqueFd>;

  void LoadAndExecute(const channel::LoadRecord& record);
  absl::Status Load(const channel::LoadRecord& record);
  void ProbeRows(bool allowed, engine::ModelInfo* info);
  absl::Status SendDescription(engine::ModelInfo info);
  void Execute();
  void Finish(ExitCode code);

  absl::Status Handle(channel::Packet packet);
  absl::Status TakeSegments(Descriptors* descriptors);
  absl::Status HandleRuns(const channel::RunRecord& record, Descriptors* descriptors);
  channel::Completion MakeRun(const channel::Run& run, OwnSegments* own);
  absl::Status Send(const channel::ToFront& record) const;

  ExitCode Watch();
  int WatchTimeout(uint64_t* begun_before);
  void SendHeartbeat() const;

  const channel::PacketSocket channel_;
  const uint64_t incarnation_;
  std::shared_ptr<const Segments> first_segments_;  // Until the model is loaded.
  engine::Engine* const engine_;
  Confinement* const confinement_;
  const base::Clock& clock_;

  // Written before the executors start.
  Confined confined_;
  std::vector<tensor::Tensor> warm_up_inputs_;  // That the model still reads.
  std::unique_ptr<engine::Model> model_;
  std::unique_ptr<Runner> runner_;
  bool two_widths_ = false;

  std::atomic<int> exit_code_ = -1;  // Until known.
  std::atomic<int> executors_left_ = 0;
  std::atomic<uint64_t> runs_begun_ = 0;
  std::atomic<uint64_t> runs_done_ = 0;
  std::atomic<bool> watch_sleeps_ = false;  // Until a run begins.
  bool trimmed_ = false;                    // By the watch.
  WakeEvent wake_;

  std::thread loader_;
  std::vector<std::thread> executors_;  // Made and joined by the loader's thread.
};

}  // namespace tensord::worker
