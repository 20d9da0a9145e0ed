// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sched/plan_batch.h"

namespace tensord::sched {

// Which calls share a lane, and so may share a batch.
enum class Likeness : uint8_t {
  kNone,    // They run alone.
  kShapes,  // Same dtypes, same dims but the first.
  kRanks,   // Same dtypes and ranks: they are padded to each other.
};

// The waiting calls of one signature that look alike.
class CallLane {
 public:
  explicit CallLane(int signature) : signature_(signature) {}
  // REQUIRES: likeness is not kNone.
  CallLane(int signature, Likeness likeness, std::span<const tensor::TensorView> inputs);

  int signature() const { return signature_; }
  bool alone() const { return likeness_ == Likeness::kNone; }
  Likeness likeness() const { return likeness_; }
  bool Matches(std::span<const tensor::TensorView> inputs) const;
  // For other rows from now on. REQUIRES: no calls are here; it is not the lane of lone calls.
  void Reshape(std::span<const tensor::TensorView> inputs);

  // In the order of service.
  std::span<const Pending> calls() const { return std::span(calls_).subspan(head_); }
  // Of all calls; one without rows counts as one.
  int64_t rows() const { return rows_; }
  // How many calls would be served before this one.
  size_t CallsBefore(const Pending& call) const;
  void Push(const Pending& call);
  // REQUIRES: a call with this id was pushed with the same values and is still here.
  void Remove(const Pending& call);

 private:
  std::vector<Pending>::const_iterator UpperBound(const Pending& call) const;

  const int signature_;
  const Likeness likeness_ = Likeness::kNone;
  std::vector<tensor::DType> dtypes_;
  std::vector<tensor::Shape> shapes_;  // With a leading dim of 0; kRanks: all dims.
  std::vector<Pending> calls_;         // From head_ on: removing the first is the usual case.
  size_t head_ = 0;
  int64_t rows_ = 0;
};

// All lanes of a queue. A lane stays where it is; at most kLanesMax a signature, the shapes beyond
// run alone.
class CallLanes {
 public:
  explicit CallLanes(size_t signatures) : lanes_(signatures) {}

  // Where such a call belongs.
  CallLane& Find(int signature, Likeness likeness, std::span<const tensor::TensorView> inputs);
  void Push(CallLane& lane, const Pending& call);
  void Remove(CallLane& lane, const Pending& call);

  // Those that hold calls, in no particular order.
  std::span<CallLane* const> active() const { return active_; }
  int64_t calls() const { return calls_; }
  uint64_t bytes() const { return bytes_; }

 private:
  std::vector<std::vector<std::unique_ptr<CallLane>>>
      lanes_;  // Of each signature; lone ones first.
  std::vector<CallLane*> active_;
  int64_t calls_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace tensord::sched
