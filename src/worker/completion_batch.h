// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <utility>

#include "absl/time/time.h"
#include "base/limits.h"
#include "channel/record.h"

namespace tensord::worker {

// Completions of one record's runs, to be sent together: a send costs microseconds, which is much
// for a run of three and nothing for a run of a millisecond.
class CompletionBatch {
 public:
  // A run as short as this may have its answer wait for the next run, which is likely as short.
  static constexpr absl::Duration kQuickRun = absl::Microseconds(20);
  // And no answer waits longer than this before the next run begins.
  static constexpr absl::Duration kWaitMax = absl::Microseconds(50);

  // True when what waits must be sent before `next` is added, to keep to the record's size.
  bool FullFor(const channel::Completion& next) const {
    return bytes_ + channel::CompletionBytes(next) > limits::kRecordBytesMax - kHeaderRoom;
  }
  void Add(channel::Completion completion, absl::Time now) {
    if (record_.completions.empty()) since_ = now;
    bytes_ += channel::CompletionBytes(completion);
    record_.completions.push_back(std::move(completion));
  }
  // True when to send what waits before another run begins. REQUIRES: something waits.
  bool Due(absl::Time now, absl::Duration last_run, bool same_signature_follows) const {
    return !same_signature_follows || last_run > kQuickRun || now - since_ >= kWaitMax;
  }
  bool empty() const { return record_.completions.empty(); }
  channel::CompletionRecord Take() {
    bytes_ = 0;
    return std::exchange(record_, {});
  }

 private:
  static constexpr size_t kHeaderRoom = 64;  // A record's own header takes 24.

  channel::CompletionRecord record_;
  size_t bytes_ = 0;
  absl::Time since_;
};

}  // namespace tensord::worker
