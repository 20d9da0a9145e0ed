// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>

#include "absl/time/time.h"

// The limits of a training run; beside the code that they bound, as nothing else knows it.
namespace tensord::train::limits {

inline constexpr int kRanksPerNodeMax = 256;      // Processes of one agent; a machine has 8 GPUs.
inline constexpr int kNodesMax = 1024;            // Agents that one leader meets.
inline constexpr size_t kLineBytesMax = 8 << 10;  // Of a rank's output; longer lines are cut up.
inline constexpr size_t kTracebackBytesMax = 6 << 10;  // Of the summary; the log file has it all.
inline constexpr size_t kTailLinesMax = 40;            // Last words of a rank without a traceback.
inline constexpr size_t kConsoleBytesMax = 4 << 20;    // Output that waits for a slow terminal.
inline constexpr size_t kLinkLineBytesMax = 64 << 10;  // A message; the cluster of 1,024 ranks.
inline constexpr size_t kLinkBacklogBytesMax = 4 << 20;  // Messages that a peer does not read.
inline constexpr absl::Duration kHelloWait = absl::Seconds(10);  // For a peer's first message.
inline constexpr absl::Duration kLinkBeatEvery = absl::Seconds(1);
inline constexpr absl::Duration kLinkBeatLost = absl::Seconds(15);  // Starved machines beat late.
inline constexpr absl::Duration kConnectRetry = absl::Milliseconds(500);
inline constexpr absl::Duration kProbeWait = absl::Seconds(5);  // One connect of the matrix.
inline constexpr absl::Duration kSshWait = absl::Seconds(30);   // For a machine to answer at all.
inline constexpr absl::Duration kDumpWait = absl::Seconds(3);   // For all stacks to be written.
inline constexpr absl::Duration kKillEvery = absl::Milliseconds(50);  // Until nothing is left.
inline constexpr absl::Duration kBackoffFirst = absl::Seconds(1);     // Doubled each restart.
inline constexpr absl::Duration kBackoffMax = absl::Minutes(1);
inline constexpr int kStolenPortTriesMax = 3;  // In a row; then something else is wrong.
inline constexpr absl::Duration kProgressEvery = absl::Seconds(2);  // A progress bar's lines.
inline constexpr absl::Duration kLastCall = absl::Seconds(30);  // For more agents than the least.
inline constexpr absl::Duration kClockSkewMax = absl::Seconds(2);
inline constexpr int kFilesMin = 4096;  // Open files a process; gRPC and input readers need many.

}  // namespace tensord::train::limits
