// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

// Every queue, buffer, wait and retry has its limit here, one line each, with its reason.
// Grouped by folder; a limit that an operator may change has its option's default here.
namespace tensord::limits {

// tensor/
inline constexpr int kRankMax = 8;  // Eigen's kernels end here; keeps shapes inline.
inline constexpr uint64_t kTensorBytesMax = 1ull << 31;  // One protobuf message cannot carry more.
inline constexpr uint64_t kElementsMax = 1ull
                                         << 31;  // Same, for one-byte elements and empty strings.
inline constexpr size_t kInputsMax = 512;        // Named tensors a request; wide models have ~300.

// obs/
inline constexpr size_t kMetricModelsMax = 20'000;  // Names with series; twice kModelsMax.
inline constexpr size_t kMetricPathsMax = 1024;     // Version directories with series.
inline constexpr size_t kMetricVersionsKept = 64;   // Unloaded ones still on the metrics page.

// config/
inline constexpr size_t kConfigFileBytesMax = 16 << 20;  // 100,000 models; a wrong path is larger.
inline constexpr size_t kSessionConfigBytesMax = 16 << 10;  // Shares a record with paths and tags.
inline constexpr int64_t kDrainMillisecondsMax =
    24 * 3600 * 1000;                     // Nobody waits a day for a stop.
inline constexpr int64_t kLoopsMax = 64;  // One per 8 CPUs: a machine of 512.

// wire/
inline constexpr uint64_t kDecodedBytesMax = 1ull << 31;  // Copied tensors of one request together.
inline constexpr uint64_t kFilledBytesMax = 64 << 20;     // Elements a request may leave out.
inline constexpr size_t kJsonNestingMax = 1 << 24;  // One bit each; only in members we ignore.
inline constexpr size_t kSignaturesMax = 1024;      // Of one model; a model has one to ten.
inline constexpr int kSignatureRankMax = 254;       // TensorFlow's own limit.
inline constexpr uint64_t kContextBytesMax =
    256 << 20;  // Copies of a context, one before each example: 1,000 times 256 KB.
inline constexpr size_t kSignaturesPerRunMax = 64;  // Tasks of a MultiInference; real ones: 2 to 5.

// loop/
inline constexpr int kPostedTasksMax =
    65536;  // Messages waiting for one loop; more means it hangs.

// channel/
inline constexpr size_t kRecordBytesMax = 64 * 1024;  // Below the default socket buffer of 208 KiB.
inline constexpr size_t kRunsPerRecordMax = 64;       // A wake-up's worth; more only adds latency.
inline constexpr size_t kErrorTextBytesMax = 4096;  // A worker's words; clients see at most 1,024.
inline constexpr uint64_t kRequestSegmentBytes = 4 << 20;   // Six 602 KB images in flight.
inline constexpr uint64_t kResponseSegmentBytes = 2 << 20;  // Larger outputs get their own segment.
inline constexpr uint64_t kModelInfoBytesMax = 64
                                               << 20;  // Signature map; a real one is under 1 MB.

inline constexpr uint64_t kSegmentBytesMax = 1ull << 32;  // Two of the largest tensors.
inline constexpr size_t kLoadListMax = 64;  // Tags, op libraries, warm-up sizes; real ones: < 10.
inline constexpr size_t kFetchListsMax =
    64;  // Sets of signatures that run as one; the runtime keeps a compiled graph for each.
inline constexpr uint32_t kExecutorsMax = 256;  // Threads that take runs; more cores share a model.

// worker/, fleet/
inline constexpr absl::Duration kHeartbeatEvery =
    absl::Milliseconds(100);  // Only while work is out.
inline constexpr absl::Duration kHeartbeatLost =
    absl::Seconds(3);                                  // Starved CPUs delay beats 4x and more.
inline constexpr size_t kSideFileBytesMax = 60 << 10;  // A text in a worker's description: 64 KiB.
inline constexpr int kHeartbeatsMax = 1000;  // In 100 ms: a held-up reader finds 300 in its queue.
inline constexpr uint64_t kGrownSegmentBytesMax =
    256 << 20;  // A worker's standard segment; eight batches of 32 MB are as good as one.
inline constexpr int kOwnRunsBeforeGrowth = 8;  // Fewer are an accident that larger ones outlive.
inline constexpr absl::Duration kGrownSegmentsIdle =
    absl::Minutes(1);  // Memory is kept so long for large runs to come back.
inline constexpr uint64_t kOwnSegmentsBytesMax =
    1ull << 32;  // Of one worker's runs; one run with the largest inputs and outputs.
inline constexpr absl::Duration kLoadWaitMax = absl::Minutes(30);  // Slow disks and large models.
inline constexpr absl::Duration kRunOverrun = absl::Seconds(30);   // Past the last deadline: kill.
inline constexpr absl::Duration kStopGrace =
    absl::Seconds(5);  // For a told worker to end; then killed.
inline constexpr absl::Duration kZygoteRestartFirst =
    absl::Milliseconds(100);  // Doubled each death.
inline constexpr absl::Duration kZygoteRestartMax =
    absl::Seconds(30);                     // A broken runtime is retried.
inline constexpr int kZygoteTriesMax = 4;  // In a row; then what waits for a zygote is told.
inline constexpr absl::Duration kZygoteStartMax =
    absl::Minutes(2);  // Mapping a gigabyte of libraries from a slow disk.
inline constexpr absl::Duration kForkWaitMax = absl::Seconds(10);  // A fork takes milliseconds.
inline constexpr int kForkTriesMax = 3;       // Of one worker, when zygotes die before they answer.
inline constexpr size_t kEarlyEndsMax = 256;  // Ends heard of before the fork was; a burst at most.
inline constexpr int kLogLineBytesMax = 1024;             // Of a worker's stdout and stderr.
inline constexpr int kLogLinesPerSecondMax = 200;         // A log flood must not fill a disk.
inline constexpr size_t kLogBytesPerSecondMax = 1 << 20;  // Nor keep the reading loop busy.

// models/
inline constexpr int kLoadsInFlight = 2;  // First loads at a time: each takes cores, disk, memory.
inline constexpr absl::Duration kLoadStandsAside =
    absl::Seconds(30);  // A load this old hangs or is huge: the next may start beside it.
inline constexpr int kLoadsInFlightMax = 8;  // All loads, restarts too; bounds what stands aside.
inline constexpr absl::Duration kLoadRetryFirst = absl::Seconds(1);  // Doubles up to the interval.
inline constexpr absl::Duration kFailedRetryEvery =
    absl::Minutes(1);  // A failed version when nothing else serves; costs one load a minute.
inline constexpr absl::Duration kRestartFirst = absl::Milliseconds(100);  // Doubles up to the next.
inline constexpr absl::Duration kRestartMax = absl::Seconds(30);
inline constexpr int kDeathsMax = 5;  // More within the next line are a crash loop.
inline constexpr absl::Duration kDeathsWindow = absl::Minutes(1);
inline constexpr int kEndedVersionsMax = 16;      // Kept a model for GetModelStatus.
inline constexpr size_t kRemovedModelsMax = 64;   // Models out of the list, kept for the same.
inline constexpr size_t kModelsMax = 10'000;      // In one list; each costs a look a poll period.
inline constexpr size_t kReloadsWaitingMax = 16;  // SetModels that wait for their models.
inline constexpr absl::Duration kReloadWaitMax = absl::Minutes(10);  // Longer than loads but hung.
inline constexpr absl::Duration kIncompleteWaitMax =
    absl::Minutes(1);  // No byte has come for so long: whoever copies has given up.
inline constexpr uint64_t kWorkerBaseBytes = 24 << 20;  // 10 MB measured, segments, thread stacks.
inline constexpr int kReplicasMax = 64;                 // Workers a version; more than any machine.
inline constexpr size_t kNamesListedMax = 100'000;    // Entries of a base path that are looked at.
inline constexpr size_t kVersionsExaminedMax = 1024;  // Files of so many versions are looked at.
inline constexpr size_t kFilesExaminedMax = 10'000;   // Of one version; assets may be many.
inline constexpr int kDirectoryDepthMax = 8;  // assets.extra/a/b; a loop of links ends here.
inline constexpr uint64_t kVariablesIndexBytesMax = 64 << 20;  // 100k variables take 6 MB.
inline constexpr int kScannerThreadsMax = 16;  // File systems looked at in parallel.
inline constexpr absl::Duration kScanStuckAfter = absl::Seconds(5);  // A look takes milliseconds.
inline constexpr absl::Duration kSettleEvery = absl::Seconds(1);  // Looks while files still come.
inline constexpr int kFullScanEvery = 10;  // Polls; finds files changed in place without inotify.

inline constexpr size_t kSavedModelConfigBytesMax = 1 << 20;  // A few bytes, in practice.

// Warm-up: everything before a version becomes visible.
inline constexpr size_t kWarmUpRecordsMax = 1000;            // As the original.
inline constexpr uint64_t kWarmUpRecordBytesMax = 64 << 20;  // Held at a time, beside its tensors.
inline constexpr absl::Duration kWarmUpReadMax = absl::Minutes(1);  // Of one record, off the disk.
inline constexpr absl::Duration kWarmUpRunMax = absl::Minutes(5);   // One run; XLA compiles in it.
inline constexpr int kWarmUpReadersMax = 16;  // Threads; more than this hang on a dead file system.
inline constexpr absl::Duration kSyntheticWarmUpMax =
    absl::Seconds(20);  // Sizes after the first: a large model must not load for minutes more.

// supervisor/
inline constexpr int kFrontDeathsMax = 5;  // In kFrontDeathsWindow: more is a loop, not bad luck.
inline constexpr absl::Duration kFrontDeathsWindow = absl::Minutes(1);
inline constexpr absl::Duration kFrontRestartWaitMin = absl::Milliseconds(100);  // From the second.
inline constexpr absl::Duration kFrontRestartWaitMax = absl::Seconds(10);
inline constexpr absl::Duration kDrainMargin = absl::Seconds(2);  // For the front's own clean-up.
inline constexpr absl::Duration kKillWaitMax = absl::Seconds(5);  // Freeing a big model takes 1 s.
inline constexpr absl::Duration kFrontHangUpMax = absl::Seconds(10);  // Writing a core dump.
inline constexpr absl::Duration kFrontPingEvery = absl::Seconds(10);  // Costs two wake-ups.
inline constexpr absl::Duration kFrontSilenceMax =
    absl::Minutes(1);  // The longest turn of a loop takes seconds: no answer by then is a hang.
inline constexpr absl::Duration kFrontStoppedMax = absl::Seconds(10);  // SIGSTOP by mistake.
inline constexpr size_t kFrontBacklogMax =
    4096;  // Records to a front that does not read: it hangs.

// sched/
inline constexpr int64_t kBatchRowsMax = 64;  // MLPs are saturated at 8; more couples latencies.
inline constexpr uint64_t kBatchBytesMax = kRequestSegmentBytes / 2;  // Two batches a segment.
inline constexpr int64_t kQueuedCallsMax = 16384;       // 16 connections full of streams.
inline constexpr uint64_t kQueuedBytesMax = 256 << 20;  // Of inputs, a version; 450 raw images.
inline constexpr absl::Duration kPatienceMax = absl::Minutes(1);  // Then a patient call is urgent.
inline constexpr int64_t kPredictionSamplesMin = 20;  // Runs seen before a prediction may refuse.
inline constexpr absl::Duration kPredictionReach = absl::Minutes(1);  // Later deadlines are met.
inline constexpr uint64_t kPaddedBytesMax = 64 << 20;  // A batch that is padded to one odd call.
inline constexpr size_t kLanesMax = 64;  // Row shapes of a signature that may form batches at once.

// serve/
inline constexpr absl::Duration kStartPoll =
    absl::Milliseconds(20);  // While the alias waits for its models.

// base/
inline constexpr size_t kRecycledBytesKept = 32 << 20;     // Fifty bodies of 602 KB at once.
inline constexpr size_t kRecycledBlockBytesMax = 8 << 20;  // Of a larger one, faults are the least.

inline constexpr uint64_t kDescriptorsReserved =
    1024;  // Not for connections: files, and eight for each of 100 workers.

// front/: connections
inline constexpr int kConnectionsMax = 10'000;    // A listener; ~20 KiB each when idle on HTTP/2.
inline constexpr int kAcceptsPerTurn = 64;        // Then the connections that exist get a turn.
inline constexpr size_t kReadBytes = 256 * 1024;  // One read; shared by a listener's connections.
inline constexpr size_t kReadBytesPerTurn = 1 << 20;   // Of one connection: the others wait.
inline constexpr size_t kWriteBytesPerTurn = 1 << 20;  // Likewise.
inline constexpr size_t kAnswerBytesPerConnectionMax = 64 << 20;     // Unsent; one may be larger.
inline constexpr absl::Duration kWriteStallMax = absl::Seconds(60);  // A client that never reads.
inline constexpr absl::Duration kBodyStallMax = absl::Seconds(60);   // A body that stops coming.
inline constexpr absl::Duration kBodyWaitMax = absl::Hours(1);  // Whole; a trickle holds memory.
inline constexpr absl::Duration kLingerMax = absl::Seconds(2);  // Reading on after the last answer,
inline constexpr size_t kLingerBytesMax = 16 << 20;             // so that no reset overtakes it.
inline constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);  // No descriptor is left.
inline constexpr absl::Duration kDrainIdle = absl::Seconds(1);  // HTTP/1.1: quiet before closing.
inline constexpr absl::Duration kDrainPingWait = absl::Seconds(5);  // For the ack between GOAWAYs.
inline constexpr size_t kBodyFirstBytes = 1 << 20;        // Reserved on a client's word alone.
inline constexpr size_t kInflateSliceBytes = 256 * 1024;  // About 1 ms; then the loop turns.
inline constexpr size_t kDeflateSliceBytes = 128 * 1024;  // About 1 ms likewise.
inline constexpr size_t kCompressedBytesMin = 256;        // A smaller answer saves no packet.
inline constexpr int kGzipMembersMax = 1000;  // A body of empty members costs only time.

// front/: HTTP/1.1
inline constexpr int kPipelinedPerTurn = 16;          // Requests of one connection; others wait.
inline constexpr size_t kReadAheadBytes = 64 * 1024;  // Pipelined bytes while a request runs.
inline constexpr size_t kUnchargedBytes = 16 * 1024;  // Of unread input, part of a connection.
inline constexpr int kEmptyLinesMax = 8;  // Before a request line; the RFC asks for one.
inline constexpr size_t kDiscardBytesMax = 256 * 1024;  // Unread body: more, and it closes instead.
inline constexpr int kChunksFree = 10'000;              // Beyond these a chunk must average
inline constexpr size_t kChunkBytesAverageMin = 16;     // this much, or it is an attack.
inline constexpr size_t kChunkLineBytesMax = 256;       // Size and extensions.

// front/: HTTP/2
inline constexpr uint32_t kStreamWindowBytes = 64 * 1024;    // Until a body's size is known.
inline constexpr int32_t kConnectionWindowBytes = 16 << 20;  // Memory is bounded by the budget.
inline constexpr uint32_t kFrameBytesMax = 64 * 1024;    // As a first window; more saves nothing.
inline constexpr size_t kSentFrameBytesMax = 64 * 1024;  // nghttp2 keeps a buffer this large.
inline constexpr size_t kHeaderBytesAbuse = 256 * 1024;  // Decoded; then it is a bomb.
inline constexpr int kContinuationsMax = 8;      // 64 KiB of headers need 4 at the least size.
inline constexpr int kSettingsPerFrameMax = 32;  // Six are defined.
inline constexpr absl::Duration kKeepaliveWait = absl::Seconds(20);  // For a ping's answer.
inline constexpr int kOutboundAcksMax = 1000;        // PING and SETTINGS from one who never reads.
inline constexpr double kResetsBurst = 800;          // Rapid reset: a cancel costs ~3 us, so
inline constexpr double kResetsPerSecond = 1000;     // this is 0.3 % of a core.
inline constexpr double kResetsPerAnswer = 10;       // A client may cancel 90 % of what it asks.
inline constexpr double kIdleFramesBurst = 1000;     // PING, SETTINGS, PRIORITY, empty DATA; each
inline constexpr double kIdleFramesPerSecond = 500;  // request adds one.
inline constexpr double kWindowUpdatesBurst = 20'000;      // gRPC sends a few a message; each DATA
inline constexpr double kWindowUpdatesPerSecond = 20'000;  // frame sent adds some.

// front/: logs of requests
inline constexpr size_t kAccessLogEntriesMax = 16'384;  // Lines that wait for the disk; some MB.
inline constexpr size_t kAccessLogTextBytesMax = 1024;  // Of a client's words in a line.
inline constexpr absl::Duration kAccessLogLookEvery = absl::Seconds(1);  // For a rename.
inline constexpr uint64_t kRequestLogBytesWaiting = 64 << 20;  // Requests that wait for the disk.
inline constexpr uint64_t kRecordFileBytesMax = 64 << 20;      // Then a new file.
inline constexpr absl::Duration kRecordFileAgeMax = absl::Minutes(10);  // Likewise.
inline constexpr absl::Duration kRecordFileLookEvery = absl::Seconds(5);
inline constexpr size_t kRecordFilesKept = 64;  // Of one prefix; 4 GB. The oldest go.
inline constexpr absl::Duration kLogFlushMax = absl::Seconds(2);  // At the end of the process.

// front/: gRPC streams (health watches, reflection)
inline constexpr size_t kStreamMessageBytesMax = 64 * 1024;       // A question; names and numbers.
inline constexpr size_t kStreamAnswerBytesMax = 1 << 20;          // Unread; ten of the largest.
inline constexpr absl::Duration kStreamIdleMax = absl::Hours(1);  // Between questions.
inline constexpr size_t kHealthWatchesMax = 1000;  // A loop; each costs a look a change of models.

// front/
inline constexpr size_t kHeaderBytesMax = 64 * 1024;   // All headers of a request together.
inline constexpr int kHeadersMax = 100;                // Fields a request; browsers send ~20.
inline constexpr size_t kTargetBytesMax = 8 * 1024;    // Request target; model names are short.
inline constexpr uint64_t kBodyBytesMax = 1ull << 31;  // As the original's message limit.
inline constexpr uint64_t kInflatedBytesHeldMax =
    208 << 20;  // Of all compressed bodies at a time: two of the largest, thousands of usual ones.
inline constexpr uint64_t kInflatedBytesMax = 100 << 20;  // The original's limit for gzip bodies.
inline constexpr int kStreamsPerConnectionMax = 1024;     // Unary calls multiplexed by one client.
inline constexpr int kJsonDepthMax = 64;                  // Nested lists; a tensor has rank <= 8.
inline constexpr absl::Duration kDeadlineDefault = absl::Hours(1);    // A client that named none.
inline constexpr absl::Duration kHeaderWaitMax = absl::Seconds(30);   // Slow-loris guard.
inline constexpr absl::Duration kIdleConnectionMax = absl::Hours(2);  // As gRPC's keep-alive.
inline constexpr size_t kGrpcMessageBytesMax = 1024;  // Error text on the wire, as the original.

}  // namespace tensord::limits
