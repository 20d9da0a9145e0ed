// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "doctor/advise/stage.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "doctor/words.h"

namespace tensord::doctor {
namespace {

constexpr double kDiskWait = 0.2;   // Share of the CPUs' time.
constexpr double kShareTold = 0.3;  // Below it no stage stands out.

constexpr std::string_view kPrefetch = "prefetch(tf.data.AUTOTUNE) last";
constexpr std::string_view kParallelMap = "map(..., num_parallel_calls=tf.data.AUTOTUNE)";
constexpr std::string_view kOwnThreads =
    "threads of its own for what waits: options.threading.private_threadpool_size = 16 (else it "
    "holds those that compute)";
constexpr std::string_view kReadMore =
    "read more files at once: interleave(..., num_parallel_calls=tf.data.AUTOTUNE), then cache() "
    "if the data fits in memory, or a local disk; prefetch(tf.data.AUTOTUNE) last";
constexpr std::string_view kOnce =
    "do the work once: cache() after the expensive map; batch() before a vectorised map(); else "
    "more CPUs and memory, or tf.data service on other machines";

bool DisksAreWaitedFor(const Observation& seen) {
  return seen.pressure_io >= kPressureHigh || seen.cpu_wait >= kDiskWait;
}

// What tf.data calls a kind of stage, and what that is to people.
struct Kind {
  std::string_view begins;
  std::string_view words;
  std::string_view fix;
};
constexpr std::array<Kind, 12> kKinds = {{
    {"Generator", "source: a Python generator, which gives one example at a time",
     "several at once: interleave(make_generator, cycle_length=8, "
     "num_parallel_calls=tf.data.AUTOTUNE), or move its work into map(..., "
     "num_parallel_calls=tf.data.AUTOTUNE); best, write the data to TFRecord files once"},
    {"TFRecord", "reading: records of files", kReadMore},
    {"TextLine", "reading: lines of files", kReadMore},
    {"FixedLengthRecord", "reading: records of files", kReadMore},
    {"FlatMap", "reading: one source after the other", kReadMore},
    {"Interleave", "reading: sources by turns, in one thread", kReadMore},
    {"ParallelInterleave", "reading: sources side by side", kReadMore},
    {"Shuffle", "shuffle: its buffer is filled anew each epoch",
     "a smaller buffer, files shuffled instead, or cache() before it; prefetch(tf.data.AUTOTUNE) "
     "last"},
    {"PaddedBatch", "batch: examples are copied together in one thread",
     "batch examples of like length (bucket_by_sequence_length), fewer and larger features; "
     "prefetch(tf.data.AUTOTUNE) last"},
    {"Batch", "batch: examples are copied together in one thread",
     "batch(..., num_parallel_calls=tf.data.AUTOTUNE); prefetch(tf.data.AUTOTUNE) last"},
    {"Filter", "filter: most examples are thrown away",
     "filter once and write what is left, or cache() after it"},
    {"Cache", "cache: it is filled, or read from a file",
     "watch again after the first epoch; keep it in memory if it fits"},
}};

Stage OfMap(const Observation& seen, bool parallel, const std::string& share) {
  const bool busy = seen.cpu >= kCpuBusy;
  if (!parallel) {
    std::string fix = base::Cat(kParallelMap, ", then ", kPrefetch);
    fix += busy ? base::Cat("; where that is not enough, ", kOnce)
                : base::Cat("; if it waits more than it computes, ", kOwnThreads);
    return {base::Cat("map: it runs one by one", share), fix};
  }
  if (busy)
    return {base::Cat("map: it is parallel, and all CPUs are busy", share), std::string(kOnce)};
  return {base::Cat("map: it is parallel, and waits", share),
          base::Cat(kOwnThreads,
                    "; TensorFlow's ops in place of py_function and numpy_function, which take "
                    "turns")};
}

// "": not told.
Stage Told(const Observation& seen) {
  const auto most = std::ranges::max_element(seen.ranks, {}, &Rank::input_wait);
  if (most == seen.ranks.end() || most->input_stage.empty() ||
      most->input_stage_share < kShareTold) {
    return {};
  }
  const std::string& name = most->input_stage;
  const std::string share =
      base::Cat(" (", Percent(most->input_stage_share), " of the pipeline's own time)");
  if (name.find("Map") != std::string::npos && !name.starts_with("FlatMap")) {
    const bool parallel = name.starts_with("Parallel") || name.starts_with("MapAndBatch");
    return OfMap(seen, parallel, share);
  }
  for (const Kind& kind : kKinds) {
    if (name.starts_with(kind.begins)) {
      return {base::Cat(kind.words, share), std::string(kind.fix)};
    }
  }
  return {base::Cat(Printable(name), share), base::Cat("cache() after it; ", kPrefetch)};
}

}  // namespace

Stage SlowStage(const Observation& seen) {
  if (Stage told = Told(seen); !told.name.empty()) return told;
  if (DisksAreWaitedFor(seen)) return {"reading: the disks are waited for", std::string(kReadMore)};
  if (seen.cpu >= kCpuBusy) {
    return {"preprocessing: all CPUs are busy with it", std::string(kOnce)};
  }
  const double busy_cpus = seen.cpu * seen.cpus;
  if (seen.cpus > 1 && busy_cpus > 0.7 && busy_cpus < 1.5) {
    return {"map: one CPU is busy and the others idle",
            base::Cat(kParallelMap, ", then ", kPrefetch)};
  }
  return {"map or source: it waits, with the CPUs mostly idle",
          base::Cat(kParallelMap, ", ", kPrefetch, ", and ", kOwnThreads,
                    "; if the source is remote, more readers: interleave(..., "
                    "num_parallel_calls=tf.data.AUTOTUNE)")};
}

}  // namespace tensord::doctor
