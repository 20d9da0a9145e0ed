// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "absl/functional/any_invocable.h"
#include "front/exchange.h"
#include "front/handlers/servable.h"
#include "sched/call.h"

namespace tensord::front {

// A bound call on its way from a connection to its version's queue.
struct Submission {
  std::shared_ptr<const Servable> servable;
  std::shared_ptr<Exchange> exchange;
  std::shared_ptr<const void> request;  // Owns what call.inputs points to, beside the exchange.
  sched::Call call;                     // Without `keep` and `done`: Submit sets them.
  // Runs once on the exchange's loop, unless the client goes away first.
  absl::AnyInvocable<void(sched::CallResult)> done;
};

// Hands the call to the queue on the version's home loop and brings the result back to the
// exchange's loop. A client that goes away cancels its call.
// Threads: the exchange's loop.
void Submit(Submission submission);

}  // namespace tensord::front
