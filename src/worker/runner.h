// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "channel/record.h"
#include "channel/segment.h"
#include "engine/engine.h"
#include "tensor/tensor.h"

namespace tensord::worker {

// Segments that rode along with one run.
struct OwnSegments {
  std::unique_ptr<channel::MappedSegment> request;
  std::unique_ptr<channel::MappedSegment> response;
};

// The standard segments: one pair at a time.
struct Segments {
  channel::MappedSegment request;
  channel::MappedSegment response;
};

// Turns runs into completions: inputs from the request segment, outputs into the response segment.
// Threads: safe from any.
// Lifetime: the model outlives it.
class Runner {
 public:
  Runner(engine::Model* model, std::shared_ptr<const Segments> segments);

  // Runs that are made from now on use these. Those before are unmapped, unless the runtime still
  // reads from them.
  void ReplaceSegments(std::shared_ptr<const Segments> segments);

  // Takes own->request over when the runtime still reads from it afterwards.
  channel::Completion Make(const channel::Run& run, OwnSegments* own);

  // Writes held outputs to the start of `segment`; forgets them when there is none, and then has no
  // answer.
  std::optional<channel::Completion> Collect(const channel::CollectRecord& record,
                                             const channel::MappedSegment* segment);

 private:
  // Outputs that did not fit their region and wait to be collected.
  struct Held {
    std::vector<engine::OutputInfo> outputs;
    // The runtime's memory, or, when that would keep the inputs' memory in use, a copy.
    std::unique_ptr<engine::Result> result;
    std::vector<tensor::Buffer> copies;
  };

  absl::Status CheckSignatures(const channel::Run& run) const;
  std::unique_ptr<engine::Result> RunModel(const channel::Run& run,
                                           std::span<const tensor::TensorView> inputs) const;
  absl::StatusOr<std::vector<tensor::TensorView>> ReadInputs(
      const channel::Run& run, const channel::MappedSegment& segment) const;
  std::shared_ptr<const Segments> segments() const;
  void Place(const channel::Run& run, std::span<std::byte> region,
             std::unique_ptr<engine::Result> result, channel::Completion* completion);
  void Hold(std::unique_ptr<engine::Result> result, channel::Completion* completion);

  engine::Model* const model_;
  const base::Clock& clock_;

  mutable base::Mutex mu_;
  std::shared_ptr<const Segments> segments_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, Held> held_ ABSL_GUARDED_BY(mu_);
  // Segments that the runtime still reads from. It does so for at most the few runs that were on
  // their way when it first did: from then on the model copies its inputs.
  std::vector<std::shared_ptr<const void>> kept_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tensord::worker
