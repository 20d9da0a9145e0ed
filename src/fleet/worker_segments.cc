// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// Larger standard segments for a worker whose runs are large, and smaller ones again.

#include <utility>

#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "fleet/worker_handle.h"

namespace tensord::fleet {

// Renews when the demand says so. Runs that are out still use the present segments, so none is sent
// until they have ended: a pause as long as one run, once in a long while.
void WorkerHandle::WatchDemand() {
  if (state_ != State::kReady || stop_asked_ || renewal_.has_value()) return;
  renewal_ = demand_.Wanted(Sizes(), loop_.Now());
  RenewWhenIdle();
}

void WorkerHandle::RenewWhenIdle() {
  if (!renewal_.has_value() || !out_.empty()) return;
  if (state_ != State::kReady || stop_asked_) return;
  if (renewal_sent_ != absl::InfiniteFuture()) return;
  const absl::Status status = Renew(*renewal_);
  if (status.ok()) return;
  // It goes on as before; the next attempt takes as many large runs again.
  demand_.Reset(loop_.Now());
  renewal_.reset();
  loop_.Defer([self = self_] {
    if (*self != nullptr) (*self)->observer_->OnFree();
  });
}

absl::Status WorkerHandle::Renew(const SegmentSizes& sizes) {
  ASSIGN_OR_RETURN(auto request, channel::RequestSegment::Create(sizes.request_bytes));
  ASSIGN_OR_RETURN(auto response, channel::ResponseSegment::Create(sizes.response_bytes));
  SendRecord(channel::SegmentsRecord{}, {request.fd(), response.fd()});
  request_ = std::make_shared<RequestArea>(std::move(request));
  parts_.response = std::move(response);
  response_slots_ = std::make_unique<channel::SlotAllocator>(sizes.response_bytes);
  renewal_sent_ = loop_.Now();
  KeepWatch();
  return absl::OkStatus();
}

void WorkerHandle::OnSegmentsTaken() {
  if (renewal_sent_ == absl::InfiniteFuture()) return Violation("segments that were not sent");
  renewal_sent_ = absl::InfiniteFuture();
  renewal_.reset();
  demand_.Reset(loop_.Now());
  loop_.Cancel(demand_timer_);
  demand_timer_ = 0;
  if (Sizes() != first_sizes_) {
    demand_timer_ = loop_.At(loop_.Now() + limits::kGrownSegmentsIdle, [this] { OnDemandTimer(); });
  }
  observer_->OnFree();
}

void WorkerHandle::OnDemandTimer() {
  demand_timer_ = loop_.At(loop_.Now() + limits::kGrownSegmentsIdle, [this] { OnDemandTimer(); });
  WatchDemand();
}

}  // namespace tensord::fleet
