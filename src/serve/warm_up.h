// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/model_info.h"
#include "fleet/worker.h"
#include "loop/event_loop.h"
#include "models/lane.h"
#include "serve/record_reader.h"
#include "tensor/signature.h"
#include "wire/warm_up_log.h"

namespace tensord::serve {

// What is replayed into a worker that has loaded, before anybody sees its version.
struct WarmUpPlan {
  std::string file;     // A TFRecord file of PredictionLog messages.
  int repeats = 1;      // Runs of each record.
  bool strict = false;  // Whatever is wrong with the file or a record fails the load.
  // Batch sizes that the scheduler may form: each signature that batches is run once in each, with
  // the first row of its first record.
  std::vector<int64_t> rows = {};
};

struct WarmUpReport {
  absl::Status status;   // Not OK: the load must fail (strict only).
  uint32_t records = 0;  // Replayed without an error.
  uint32_t runs = 0;
  absl::Duration time;
  std::vector<std::string> warnings = {};
  std::vector<engine::RunTime> run_times = {};  // Of sizes that ran more than once.
};

// Replays recorded requests: reads on threads of its own, which may hang with the file system, and
// runs one after the other on the worker. No queue, no counter of requests sees any of it.
//
// Threads: the worker's home loop. Lifetime: the loop outlives it; destroy it before or when the
// worker is told to stop or has ended: it is silent then.
class WarmUp {
 public:
  using Done = absl::AnyInvocable<void(WarmUpReport)>;

  // `mailbox` leads to the same loop. `done` runs once, never inside this call; it may destroy the
  // WarmUp.
  WarmUp(loop::EventLoop& loop, std::shared_ptr<models::Mailbox> mailbox, fleet::Worker* worker,
         tensor::SignatureList signatures, WarmUpPlan plan, Done done);
  ~WarmUp();

  // "warm-up record 3", for words about a worker that dies now; empty when nothing runs.
  const std::string& now() const { return what_; }

 private:
  struct Call;  // A request bound to its signature, with its bytes.

  void ReadOn();
  void OnPiece(RecordReader::Piece piece);
  void Step();
  // What there is to do next without waiting: a run that was begun, or the end.
  bool StartRecord();
  bool StartBucket();
  absl::Status Take(std::string record);
  absl::Status BindPredict(std::string_view request, Call* call) const;
  absl::Status BindExamples(wire::WarmUpRecord::Kind kind, std::string_view request,
                            Call* call) const;
  void PlanBuckets();
  void Submit(const std::shared_ptr<Call>& call, int64_t copies);
  void OnRun(const fleet::RunOutcome& outcome);
  void Problem(const absl::Status& status);

  loop::EventLoop& loop_;
  const std::shared_ptr<models::Mailbox> mailbox_;
  fleet::Worker* const worker_;
  const tensor::SignatureList signatures_;
  const WarmUpPlan plan_;
  Done done_;

  // Reading.
  std::shared_ptr<std::unique_ptr<RecordReader>>
      file_;  // The reading thread's, while there is one.
  bool reading_ = false;
  bool at_end_ = false;
  loop::TimerId read_timer_ = 0;
  std::deque<std::string> records_;  // Read and not replayed yet.

  // Replaying.
  uint32_t taken_ = 0;    // Records so far, good or bad.
  int repeats_left_ = 0;  // Of the current one.
  std::shared_ptr<Call> current_;
  std::map<int, std::shared_ptr<Call>> firsts_;  // By signature, where rows can be joined.
  std::set<std::pair<int, int64_t>> sizes_;      // Signatures and rows that ran.
  std::deque<std::pair<int, int64_t>> buckets_;  // Those still to be run.
  bool buckets_planned_ = false;
  std::string what_;              // Of the run that is out, for words.
  std::pair<int, int64_t> size_;  // Likewise its signature and rows.
  std::map<std::pair<int, int64_t>, absl::Duration>
      shortest_;  // Of each size, after the first run.

  static constexpr int kProblemsSaid = 8;  // One a line; the others are counted.
  int problems_ = 0;
  const absl::Time begun_;
  WarmUpReport report_;
  const std::shared_ptr<WarmUp*> self_;  // Null once this is gone.
};

}  // namespace tensord::serve
