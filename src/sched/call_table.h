// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "sched/call.h"
#include "sched/model_bytes.h"
#include "sched/rows.h"

namespace tensord::sched {

class CallLane;
struct Batch;

// Where a call that was not answered yet stands.
enum class CallState : uint8_t {
  kFree,      // The entry holds no call.
  kQueued,    // In `lane`, or among the suspects when that is null.
  kRunning,   // In `batch`.
  kInPieces,  // Larger than a batch: its pieces are calls of their own.
  kDecided,   // Its answer is on the way; a cancel still stops it.
};

// The pieces of a call that is larger than a batch may be, on their way back together.
struct CallPieces {
  std::vector<CallId> ids;
  std::vector<OwnedViews> outputs;  // By piece.
  size_t left = 0;                  // Pieces without an answer.
  CallResult result;                // Without outputs.
};

struct CallEntry {
  CallId id = 0;
  CallState state = CallState::kFree;
  Call call;
  uint64_t bytes = 0;          // Of the inputs.
  ModelBytesHeld model_bytes;  // Until it is answered.
  absl::Time turn;             // FairShare's, when it first waited.
  absl::Time due;              // Its place in the queue; the infinite past before it has one.
  CallLane* lane = nullptr;
  Batch* batch = nullptr;
  size_t batch_index = 0;              // Among the batch's members.
  int workers_lost = 0;                // Died with this call in them.
  bool alone = false;                  // It was in a run that failed: its next run is its own.
  bool noted = false;                  // The poison list knows its content.
  bool trial = false;                  // As Pending's.
  absl::Time started;                  // Of its last run.
  std::unique_ptr<CallPieces> pieces;  // Only while in pieces.
  bool is_piece = false;
  size_t heap_index = SIZE_MAX;  // In the table's heap of deadlines.
};

// All calls that wait for an answer, by id and by deadline. Entries are reused, so that a steady
// load allocates nothing. An entry stays where it is until removed.
class CallTable {
 public:
  // The entry's state and bytes are the caller's to set.
  CallEntry& Add(Call call);
  // nullptr when there is no such call (any more).
  CallEntry* Find(CallId id);
  void Remove(CallEntry& entry);
  // Its deadline does not matter any longer.
  void ForgetDeadline(CallEntry& entry);

  size_t size() const { return entries_.size() - free_.size(); }
  // Of all that matter; infinite future when there is none.
  absl::Time NextDeadline() const;
  // The call with the next deadline. REQUIRES: NextDeadline() is not the infinite future.
  CallEntry& NextToExpire();
  // All calls, in no particular order.
  std::vector<CallId> Ids() const;

 private:
  struct HeapItem {
    absl::Time deadline;
    CallEntry* entry;
  };

  void Place(size_t at, HeapItem item);
  void SiftUp(size_t at, HeapItem item);
  void SiftDown(size_t at, HeapItem item);

  std::deque<CallEntry> entries_;
  std::vector<uint32_t> free_;
  std::vector<HeapItem> heap_;  // A binary heap; the earliest deadline is first.
};

}  // namespace tensord::sched
