// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "front/exchange.h"
#include "front/limits.h"
#include "front/token_bucket.h"
#include "loop/event_loop.h"

namespace tensord::front {

// One call that the rules were asked about. Views: of the call.
struct AuditEntry {
  std::string_view identity;   // Empty: nobody.
  std::string_view operation;  // "infer", "read", "admin", "probe" or "any".
  std::string_view model;      // Empty: none.
  absl::Status verdict;
};

// How many lines of one kind may be written: kAuditLinesBurst at once, kAuditLinesPerSecond for
// long. Pure.
class AuditLimit {
 public:
  // True: the line may be written. False: it is counted.
  bool Take(absl::Time now);
  // How many were counted since the last question.
  uint64_t TakeLeftOut() { return std::exchange(left_out_, 0); }

 private:
  TokenBucket lines_{limits::kAuditLinesBurst, limits::kAuditLinesPerSecond, absl::InfinitePast()};
  uint64_t left_out_ = 0;
};

// The lines "audit: ..." of the log. Who asks without end fills no disk: what is too much is
// counted, and the count is a line a second.
// Threads: safe from any. Lifetime: outlives the loops.
class Audit {
 public:
  // On the loop of the call.
  void Write(loop::EventLoop& loop, const RequestHead& caller, const AuditEntry& entry);

 private:
  // False: it is counted, and told within kAuditSummaryEvery.
  bool MayWrite(loop::EventLoop& loop, bool refused);
  void Summarize();

  base::Mutex mu_;
  AuditLimit refused_ ABSL_GUARDED_BY(mu_);
  AuditLimit admin_ ABSL_GUARDED_BY(mu_);
  bool summary_due_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace tensord::front
