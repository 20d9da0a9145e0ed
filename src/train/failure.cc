// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/failure.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "train/limits.h"

namespace tensord::train {
namespace {

constexpr std::string_view kTracebackHead = "Traceback (most recent call last):";
// After it come the nodes, an empty line, and only then what went wrong.
constexpr std::string_view kGraphError = "Graph execution error:";

// What TensorFlow says on a rank when another one died or never came.
constexpr std::array<std::string_view, 14> kEchoes = {
    "Collective ops is aborted by",
    "StartAbort UNAVAILABLE",
    "UnavailableError",
    "stopped sending heartbeats",
    "CoordinationService/Heartbeat",
    "CoordinationService/RegisterTask",
    "Barrier timed out",
    "Connection reset by peer",
    "failed to connect to all addresses",
    "Shutdown barrier in coordination service",
    "was aborted by another task",
    "Coordination service agent is in ERROR",
    "ncclRemoteError",
    "remote process exited or there was a network error",
};

struct Known {
  std::string_view text;
  std::string_view advice;
};
constexpr std::string_view kNcclAdvice =
    "NCCL_DEBUG=INFO shows more; NCCL_SOCKET_IFNAME picks the network interface";
constexpr std::string_view kNcclCudaAdvice =
    "a CUDA call of NCCL failed, and its NCCL WARN line says which: most often the GPU's memory is "
    "full (nvidia-smi), or the driver is too old for this CUDA (tensord doctor); NCCL_DEBUG=INFO "
    "shows more";
constexpr std::string_view kNcclRemoteAdvice =
    "another rank is gone, or the network between them broke: look at the rank that failed first, "
    "then at the network; NCCL_SOCKET_IFNAME picks the interface";
constexpr std::string_view kNcclUsageAdvice =
    "NCCL needs a GPU for each rank and the same calls on all: no more processes a machine than "
    "GPUs (--nproc-per-node gpu), and the same script everywhere";
constexpr std::array<Known, 23> kKnown = {{
    {"Could not start gRPC server",
     "another process took the rank's port between its reservation and TensorFlow's start"},
    {"joining a group with size",
     "the ranks disagree on the number of workers: does the script set TF_CONFIG itself?"},
    {"Barrier timed out. Id: [Init]",
     "a rank never reached its strategy's constructor; the line names it. Give --start-timeout "
     "more time if it was only slow"},
    {"CoordinationService/RegisterTask",
     "the chief never answered: did it fail earlier, or does a firewall block its port?"},
    {"Attempt to convert a value (PerReplica",
     "Keras 3 fit fails under MultiWorkerMirroredStrategy without the injected help: leave "
     "--no-inject out, or use tf-keras (TF_USE_LEGACY_KERAS=1)"},
    {"Collective ops must be configured at program startup",
     "build the strategy before any other TensorFlow call of the script"},
    {"No space left on device", "a disk is full: free space where checkpoints and logs go"},
    {"ResourceExhaustedError",
     "out of memory: a smaller batch, mixed precision, or TF_FORCE_GPU_ALLOW_GROWTH=true when "
     "processes share a GPU"},
    {"CUDA_ERROR_OUT_OF_MEMORY",
     "the GPU's memory is full: does another process use it? See nvidia-smi"},
    {"CUDA_ERROR_INVALID_PTX",
     "the TensorFlow wheel has no kernels for this GPU: a newer wheel, or NVIDIA's container"},
    {"No module named", "a module is missing in the Python that runs the script"},
    {"can't open file", "the script's path must be valid on every machine"},
    // NCCL's names, and its words for them, before what any of its errors begins with.
    {"ncclUnhandledCudaError", kNcclCudaAdvice},
    {"unhandled cuda error", kNcclCudaAdvice},
    {"ncclRemoteError", kNcclRemoteAdvice},
    {"remote process exited or there was a network error", kNcclRemoteAdvice},
    {"ncclInvalidUsage", kNcclUsageAdvice},
    {"Duplicate GPU detected", kNcclUsageAdvice},
    {"NCCL WARN", kNcclAdvice},
    {"NCCL operation", kNcclAdvice},
    {"ncclSystemError", kNcclAdvice},
    {"ncclInternalError", kNcclAdvice},
    {"Permission denied", "a file or folder is not this user's"},
}};

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// "ValueError: …": what ends a traceback stands at the line's begin and is no continuation.
bool EndsTraceback(std::string_view line) {
  return !line.empty() && line.front() != ' ' && line.front() != '\t' &&
         !line.starts_with(kTracebackHead);
}

// Behind the nodes of a graph's error and their stacks: what went wrong, or, where there are
// several errors, the first of them. Lines of TensorFlow's own log come in between from other
// threads.
bool GivesReason(std::string_view line) {
  if (line.starts_with("  (0) ")) return true;
  const bool of_log = line.starts_with("20") && Contains(line, ".cc:");
  return EndsTraceback(line) && !of_log && !line.starts_with("Detected at node") &&
         !line.starts_with("Node: ") && line != "<stack traces unavailable>" &&
         !line.ends_with("root error(s) found.");
}

// Lower is more likely the cause.
int Weight(const RankEnd& end) {
  if (!end.by_us) {
    if (end.trouble == Trouble::kOwn) return 0;
    // TensorFlow aborts a rank that another has left.
    if (end.signal != 0 && end.signal != SIGABRT) return 0;
    if (end.signal == 0 && end.trouble == Trouble::kNone) return 1;
    return end.trouble == Trouble::kEcho ? 3 : 2;
  }
  // An error that the script has caught, or one after which Python's end hung on the other ranks.
  return end.trouble == Trouble::kOwn ? 2 : 4;
}

}  // namespace

bool IsEcho(std::string_view line) {
  return std::any_of(kEchoes.begin(), kEchoes.end(),
                     [&](std::string_view echo) { return Contains(line, echo); });
}

std::string_view AdviceFor(std::string_view line) {
  for (const Known& known : kKnown) {
    if (Contains(line, known.text)) return known.advice;
  }
  return "";
}

void RankWords::Add(std::string_view line, int64_t since_ms) {
  tail_.emplace_back(line);
  if (tail_.size() > limits::kTailLinesMax) tail_.erase(tail_.begin());
  if (advice_.empty() || in_traceback_) {
    if (const std::string_view advice = AdviceFor(line); !advice.empty()) advice_ = advice;
  }
  if (Contains(line, "Could not start gRPC server")) port_stolen_ = true;
  AddToTraceback(line, since_ms);
}

void RankWords::AddToTraceback(std::string_view line, int64_t since_ms) {
  if (line.starts_with(kTracebackHead)) {
    if (!traceback_open_) traceback_ms_ = since_ms;
    in_traceback_ = traceback_open_ = true;
    in_graph_error_ = false;
    traceback_.assign(line);
    return;
  }
  if (!in_traceback_) return;
  traceback_ += base::Cat("\n", line);
  if (traceback_.size() > limits::kTracebackBytesMax) {
    // Its end says what happened, its begin only how Python got there.
    traceback_.erase(0, traceback_.size() - limits::kTracebackBytesMax);
  }
  if (in_graph_error_ && GivesReason(line)) {
    in_graph_error_ = false;
    if (IsEcho(line)) trouble_ = before_graph_error_;
    return;
  }
  if (!EndsTraceback(line)) {
    // Text that follows the error, such as the node of a graph, belongs to it.
    if (line.empty()) in_traceback_ = traceback_open_ || in_graph_error_;
    return;
  }
  if (!traceback_open_) return;
  traceback_open_ = false;
  in_graph_error_ = line.ends_with(kGraphError);
  before_graph_error_ = trouble_ == Trouble::kNone ? Trouble::kEcho : trouble_;
  const Trouble what = IsEcho(line) ? Trouble::kEcho : Trouble::kOwn;
  if (trouble_ == Trouble::kNone) trouble_ms_ = traceback_ms_;
  if (trouble_ != Trouble::kOwn) trouble_ = what;
}

std::string RankWords::Words() const {
  if (!traceback_.empty()) return traceback_;
  std::string words;
  for (const std::string& line : tail_) words += base::Cat(words.empty() ? "" : "\n", line);
  if (words.size() > limits::kTracebackBytesMax) {
    words.erase(0, words.size() - limits::kTracebackBytesMax);
  }
  return words;
}

int FindCause(const std::vector<RankEnd>& ends) {
  const RankEnd* cause = nullptr;
  for (const RankEnd& end : ends) {
    if (end.ok()) continue;
    if (cause == nullptr ||
        std::pair(Weight(end), end.since_ms) < std::pair(Weight(*cause), cause->since_ms)) {
      cause = &end;
    }
  }
  return cause == nullptr ? -1 : cause->rank;
}

std::string HowItEnded(const RankEnd& end) {
  if (end.signal == 0) return base::Cat("exit ", end.code);
  const char* name = sigabbrev_np(end.signal);
  if (name == nullptr) return base::Cat("signal ", end.signal);
  return base::Cat("signal ", end.signal, " (SIG", name, ")");
}

std::string FailureSummary(const std::vector<RankEnd>& ends, const std::vector<TaskId>& tasks) {
  const int cause = FindCause(ends);
  if (cause < 0) return "";
  std::string text;
  for (const RankEnd& end : ends) {
    if (end.rank != cause) continue;
    text += base::Cat("first failure: ", TaskName(tasks[static_cast<size_t>(end.rank)]), ", ",
                      HowItEnded(end), ", after ",
                      std::round(static_cast<double>(end.since_ms) / 100) / 10, " s\n");
    size_t at = 0;
    while (at < end.words.size()) {
      const size_t stop = std::min(end.words.find('\n', at), end.words.size());
      text += base::Cat("    ", end.words.substr(at, stop - at), "\n");
      at = stop + 1;
    }
    if (end.signal == SIGKILL && !end.by_us) {
      text +=
          "  advice: nobody asks before SIGKILL: look for the kernel's out-of-memory killer "
          "(dmesg) or a memory limit\n";
    } else if (!end.advice.empty()) {
      text += base::Cat("  advice: ", end.advice, "\n");
    }
  }
  for (const RankEnd& end : ends) {
    if (end.rank == cause) continue;
    const std::string_view kind = end.ok()                        ? "had ended"
                                  : end.by_us                     ? "was stopped"
                                  : end.trouble == Trouble::kEcho ? "echo of the loss"
                                                                  : "failed later";
    text += base::Cat("  ", TaskName(tasks[static_cast<size_t>(end.rank)]), ": ", HowItEnded(end),
                      " (", kind, ")\n");
  }
  return text;
}

}  // namespace tensord::train
