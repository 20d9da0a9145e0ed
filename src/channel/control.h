// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

// The fixed records between supervisor, front and zygote, sent over SOCK_SEQPACKET sockets as they
// lie in memory: all three are one build on one machine, and none of them runs model code. A
// record of another size or magic is still refused, never interpreted.
namespace tensord::channel {

inline constexpr uint32_t kControlMagic = 0x4c435444;  // "DTCL"

enum class ControlKind : uint32_t {
  // Front to supervisor.
  kStartZygote = 1,  // runtime, engine, onednn. Answered by kZygoteStarted, or kProcessEnded of its
                     // pid.
  kKillWorker = 2,   // pid: SIGKILL, if it is the supervisor's own child and no zygote or front.
  kFrontReady = 3,   // The front accepts connections. The supervisor tells the user and systemd.
  kKillZygote = 4,   // pid: SIGKILL, if it is a zygote. It does not answer; another is asked for.
  kPong = 5,         // Answers kPing.
  kKeep = 6,         // Rides along: sealed memory for the next front, in place of what was kept;
                     // none: nothing is to be kept.
  kReloaded = 7,     // What one kReload asked for is done, or was found impossible.
  // Supervisor to front.
  kZygoteStarted = 16,   // runtime, pid; rides along: the front's end of the zygote's socket.
  kProcessEnded = 17,    // pid, wait_status as waitpid gave it. Workers and zygotes.
  kProcessStopped = 18,  // pid: SIGSTOP or the like.
  kDrain = 19,           // SIGTERM or SIGINT came: finish and exit with 0.
  kReload = 20,          // SIGHUP came: read the model configuration again.
  kPing = 21,            // Answered at once by a front whose control loop turns.
  // Front to zygote.
  kFork = 32,  // request, incarnation; rides along, in this order: the worker's channel socket, its
               // request segment, its response segment, stdout, stderr.
  // Zygote to front.
  kForked = 33,      // request, pid.
  kForkFailed = 34,  // request, error: an errno.
};

enum class OneDnn : uint32_t { kAuto = 0, kOn = 1, kOff = 2 };

// What a zygote has mapped, and so what its workers run models with.
enum class EngineKind : uint32_t { kTensorFlow = 0, kLiteRt = 1 };

// What a front may leave for the next one (kKeep): four configuration files of the largest size.
inline constexpr uint64_t kKeptBytesMax = 64 << 20;

// One struct for all kinds: what a kind does not name is zero.
struct ControlRecord {
  uint32_t magic = kControlMagic;
  ControlKind kind{};
  uint32_t runtime = 0;  // Number of a runtime environment; the front gives them out.
  OneDnn onednn = OneDnn::kAuto;
  int32_t pid = 0;
  int32_t wait_status = 0;
  int32_t error = 0;
  EngineKind engine = EngineKind::kTensorFlow;
  uint64_t request = 0;
  uint64_t incarnation = 0;
};
static_assert(sizeof(ControlRecord) == 48);

// Well-known descriptors that the supervisor leaves in the front after exec; the listening sockets
// are named on the front's command line.
inline constexpr int kFrontSupervisorFd = 3;  // The front's end of its socket to the supervisor.
inline constexpr int kZygoteSocketFd = 3;     // The zygote's end of its socket to the front.

}  // namespace tensord::channel
