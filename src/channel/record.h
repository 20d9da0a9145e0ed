// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/shape.h"

// The records that front and worker exchange over one SOCK_SEQPACKET socket. docs/shared_memory.md
// has the rules; in short: everything that decides anything is in a record, because the kernel
// copies records; shared memory carries tensor bytes only.
//
// On the wire: a header {magic u32, kind u16, zero u16, incarnation u64, count u32, zero u32}, then
// `count` items, all little-endian, each variable in length. A record is at most kRecordBytesMax.
// Decode* trusts nothing: bad magic, counts, lengths, dtypes, dims or left-over bytes are an error,
// and the reader of an error ends the other side.
namespace tensord::channel {

// A tensor's place in a segment.
struct TensorDescriptor {
  tensor::DType dtype = tensor::DType::kInvalid;
  tensor::Shape shape = {};
  uint64_t offset = 0;  // From the segment's start; a multiple of 64.
  uint64_t bytes = 0;   // Of the packed form.
};

// ---- Front to worker -------------------------------------------------------------------------

// The first record a worker gets: what to load and how.
struct LoadRecord {
  std::string model;  // For words in logs only.
  int64_t version = 0;
  std::string directory;  // Absolute path of the version's directory.
  std::vector<std::string> tags;
  std::string session_config;             // A serialized tensorflow.ConfigProto.
  std::vector<std::string> op_libraries;  // Absolute paths, loaded in order before the model.
  uint32_t executors = 1;                 // Threads that take runs.
  bool runs_in_caller = true;             // RunOptions.inter_op_thread_pool = -1.
  // Goes behind session_config for a second session, whose ops stay in one thread, for runs that
  // have company. Empty: none. Opened where runs are found to use several threads, and only by a
  // worker that has not more private bytes than that, because it will have up to twice as many.
  std::string narrow_session_config;
  uint64_t narrow_bytes_max = 0;
  bool synthetic_warm_up = true;
  bool read_batching_parameters = false;  // Bring the text of that file of the directory.
  std::vector<int64_t> warm_up_rows;      // Leading dims to warm, e.g. {1, 8}.
  uint32_t sandbox_user = 0;              // Own uid and gid after the fork; 0 keeps the process's.
  bool sandbox = true;
  bool sandbox_enforced = false;   // The load fails where the sandbox's minimum does not hold.
  bool accept_weak_files = false;  // Files of others that can be read are no reason to.
};

// One run of one signature, or of several that take the same inputs. All inputs of the signature,
// in its order.
struct Run {
  uint64_t id = 0;  // Never used twice in a channel's life.
  uint32_t signature = 0;
  // Those that run with it: their outputs follow those of `signature`, in this order.
  std::vector<uint32_t> more_signatures = {};
  bool own_request_segment =
      false;  // Inputs lie in the record's passed segment, not the standard one.
  bool own_response_segment = false;  // Likewise for outputs.
  uint64_t response_offset = 0;       // Where outputs may be written, and how much.
  uint64_t response_bytes = 0;
  std::vector<TensorDescriptor> inputs = {};
};

// A record with own segments holds exactly one run; the descriptors ride along (SCM_RIGHTS), the
// request segment first.
struct RunRecord {
  std::vector<Run> runs;
};

// Answers a completion that said `held`: write the outputs into the passed segment (its descriptor
// rides along), or, with response_bytes 0 and none passed, forget them.
struct CollectRecord {
  uint64_t id = 0;
  uint64_t response_bytes = 0;
};

// Other standard segments from now on, whose descriptors ride along, the request segment first.
// Sent while no run is out; none is sent until the worker has said SegmentsTakenRecord.
struct SegmentsRecord {};

// The model is warm: give up all that its runs do not need. Sent once at most, while no run is out;
// none is sent until the worker has said SealedRecord.
struct SealRecord {};

// No more runs will come; finish what is there, then exit with 0.
struct StopRecord {};

// ---- Worker to front -------------------------------------------------------------------------

// Right after the fork.
struct HelloRecord {
  int32_t pid = 0;
};

// The model is loaded and warm. Its description (engine/model_info.h, serialized) lies at the start
// of the response segment, info_bytes long (a description that does not fit fails the load).
struct LoadedRecord {
  uint64_t info_bytes = 0;
};

struct LoadFailedRecord {
  absl::Status status;  // Text capped at kErrorTextBytesMax.
};

struct Completion {
  uint64_t id = 0;
  absl::Status status = absl::OkStatus();
  bool inputs_retained = false;  // The runtime kept the inputs' memory: never reuse this slot.
  bool held = false;             // Outputs did not fit: ask with CollectRecord; needs held_bytes.
  uint64_t held_bytes = 0;
  uint64_t run_nanoseconds = 0;
  std::vector<TensorDescriptor> outputs = {};  // dtype kInvalid, no bytes: it cannot travel.
};

struct CompletionRecord {
  std::vector<Completion> completions;
};

// Every kHeartbeatEvery while runs are out, from a thread of its own.
struct HeartbeatRecord {
  uint64_t runs_done = 0;
};

// The segments of a SegmentsRecord are mapped, and the ones before are not used any more.
struct SegmentsTakenRecord {};

// The answer to a SealRecord.
struct SealedRecord {
  absl::Status status;  // Not OK: the worker's rights are what they were.
  std::string report;   // What was done, for people; capped at kErrorTextBytesMax.
};

// The last words of a fatal-signal handler.
struct DyingRecord {
  int32_t signal = 0;
  int32_t system_call =
      -1;  // The number of a call that the filter of SealRecord forbids; with SIGSYS.
};

using ToWorker =
    std::variant<LoadRecord, RunRecord, CollectRecord, StopRecord, SegmentsRecord, SealRecord>;
using ToFront = std::variant<HelloRecord, LoadedRecord, LoadFailedRecord, CompletionRecord,
                             HeartbeatRecord, DyingRecord, SegmentsTakenRecord, SealedRecord>;

// Appends nothing else to the string. REQUIRES: the result fits kRecordBytesMax; the caller counts
// runs and inputs (RunBytes) before it adds one more.
std::string Encode(uint64_t incarnation, const ToWorker& record);
std::string Encode(uint64_t incarnation, const ToFront& record);
// Bytes that this run or completion adds to a record.
size_t RunBytes(const Run& run);
size_t CompletionBytes(const Completion& completion);

// INVALID_ARGUMENT with the reason for anything that is not a well-formed record of this
// incarnation.
absl::StatusOr<ToWorker> DecodeToWorker(std::string_view bytes, uint64_t incarnation);
absl::StatusOr<ToFront> DecodeToFront(std::string_view bytes, uint64_t incarnation);

}  // namespace tensord::channel
