// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/call_lanes.h"

#include <algorithm>

#include "base/check.h"
#include "base/limits.h"

namespace tensord::sched {
namespace {

// Dropped places at the front are given back when they are most of many.
constexpr size_t kHeadMax = 256;

bool SameRows(const tensor::Shape& a, const tensor::Shape& b) {
  return a.rank() == b.rank() &&
         std::equal(a.dims().begin() + 1, a.dims().end(), b.dims().begin() + 1);
}

int64_t CountedRows(const Pending& call) { return std::max<int64_t>(1, call.rows); }

}  // namespace

CallLane::CallLane(int signature, Likeness likeness, std::span<const tensor::TensorView> inputs)
    : signature_(signature), likeness_(likeness) {
  Reshape(inputs);
}

void CallLane::Reshape(std::span<const tensor::TensorView> inputs) {
  TENSORD_CHECK(!alone() && calls().empty());
  dtypes_.clear();
  shapes_.clear();
  for (const tensor::TensorView& input : inputs) {
    dtypes_.push_back(input.dtype);
    shapes_.push_back(input.shape.WithRows(0));
  }
}

bool CallLane::Matches(std::span<const tensor::TensorView> inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype != dtypes_[i]) return false;
    const bool alike = likeness_ == Likeness::kRanks ? inputs[i].shape.rank() == shapes_[i].rank()
                                                     : SameRows(inputs[i].shape, shapes_[i]);
    if (!alike) return false;
  }
  return true;
}

std::vector<Pending>::const_iterator CallLane::UpperBound(const Pending& call) const {
  // Most come in the order of service.
  if (calls_.size() == head_ || !Before(call, calls_.back())) return calls_.end();
  return std::upper_bound(calls_.begin() + static_cast<ptrdiff_t>(head_), calls_.end(), call,
                          Before);
}

size_t CallLane::CallsBefore(const Pending& call) const {
  return static_cast<size_t>(UpperBound(call) - calls_.begin()) - head_;
}

void CallLane::Push(const Pending& call) {
  calls_.insert(UpperBound(call), call);
  rows_ += CountedRows(call);
}

void CallLane::Remove(const Pending& call) {
  auto at =
      std::lower_bound(calls_.begin() + static_cast<ptrdiff_t>(head_), calls_.end(), call, Before);
  while (at != calls_.end() && at->id != call.id) ++at;
  TENSORD_CHECK(at != calls_.end());
  rows_ -= CountedRows(call);
  const auto place = static_cast<size_t>(at - calls_.begin());
  if (place != head_) {
    calls_.erase(at);
    return;
  }
  ++head_;
  if (head_ == calls_.size()) {
    calls_.clear();
    head_ = 0;
  } else if (head_ > kHeadMax && head_ > calls_.size() / 2) {
    calls_.erase(calls_.begin(), calls_.begin() + static_cast<ptrdiff_t>(head_));
    head_ = 0;
  }
}

CallLane& CallLanes::Find(int signature, Likeness likeness,
                          std::span<const tensor::TensorView> inputs) {
  auto& lanes = lanes_[static_cast<size_t>(signature)];
  if (lanes.empty()) lanes.push_back(std::make_unique<CallLane>(signature));
  if (likeness == Likeness::kNone) return *lanes.front();
  CallLane* idle = nullptr;
  for (size_t i = 1; i < lanes.size(); ++i) {
    if (lanes[i]->likeness() != likeness) continue;
    if (lanes[i]->Matches(inputs)) return *lanes[i];
    if (lanes[i]->calls().empty()) idle = lanes[i].get();
  }
  if (lanes.size() <= limits::kLanesMax) {
    return *lanes.emplace_back(std::make_unique<CallLane>(signature, likeness, inputs));
  }
  if (idle == nullptr) return *lanes.front();
  idle->Reshape(inputs);
  return *idle;
}

void CallLanes::Push(CallLane& lane, const Pending& call) {
  if (lane.calls().empty()) active_.push_back(&lane);
  lane.Push(call);
  ++calls_;
  bytes_ += call.bytes;
}

void CallLanes::Remove(CallLane& lane, const Pending& call) {
  lane.Remove(call);
  --calls_;
  bytes_ -= call.bytes;
  if (lane.calls().empty()) std::erase(active_, &lane);
}

}  // namespace tensord::sched
