// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "supervisor/process_limits.h"

#include <sys/resource.h>

#include "base/text.h"

namespace tensord::supervisor {
namespace {

uint64_t LimitOf(rlim_t value) { return value == RLIM_INFINITY ? ProcessLimits::kNone : value; }

struct Least {
  std::string_view what;
  uint64_t value;
  uint64_t least;  // With less, something is likely to fail.
  std::string_view so;
  std::string_view letter;  // Of ulimit.
  std::string_view unit;    // That ulimit counts in.
};

}  // namespace

ProcessLimits OwnLimits() {
  ProcessLimits limits;
  rlimit found{};
  if (getrlimit(RLIMIT_NOFILE, &found) == 0) limits.files = LimitOf(found.rlim_max);
  if (getrlimit(RLIMIT_FSIZE, &found) == 0) limits.file_bytes = LimitOf(found.rlim_cur);
  if (getrlimit(RLIMIT_NPROC, &found) == 0) limits.processes = LimitOf(found.rlim_cur);
  if (getrlimit(RLIMIT_STACK, &found) == 0) limits.stack_bytes = LimitOf(found.rlim_cur);
  if (getrlimit(RLIMIT_AS, &found) == 0) limits.address_bytes = LimitOf(found.rlim_cur);
  return limits;
}

std::vector<std::string> LowLimits(const ProcessLimits& limits, bool root) {
  const Least all[] = {
      // Four models, the listeners and pipes of each process, and a hundred connections.
      {"open files", limits.files, 256, "connections and models will be refused", "-n", "files"},
      // The largest segment of shared memory that a worker may ask for is 4 GiB.
      {"bytes of one file", limits.file_bytes, uint64_t{4} << 30,
       "shared memory counts as a file, so large requests, or every model, will fail", "-f",
       "blocks of 1 KiB"},
      // TensorFlow starts a few threads a CPU in each worker.
      {"processes and threads of this user", root ? ProcessLimits::kNone : limits.processes, 512,
       "workers or their threads will not start", "-u", "threads"},
      // A thread's default where it is not set; TensorFlow's own threads take it as it is.
      {"bytes of a thread's stack", limits.stack_bytes, 1 << 20, "a deep graph will end its worker",
       "-s", "KiB"},
      // TensorFlow's libraries, its allocators' reserves and the model, mapped at once.
      {"bytes of a process's addresses", limits.address_bytes, uint64_t{8} << 30,
       "TensorFlow or a model will not be mapped", "-v", "KiB"},
  };
  std::vector<std::string> words;
  for (const Least& one : all) {
    if (one.value >= one.least) continue;
    words.push_back(base::Cat("limit of ", one.what, ": ", one.value, ", below ", one.least, ": ",
                              one.so, "; raise it before the start (`ulimit ", one.letter,
                              "`, which counts ", one.unit, ")"));
  }
  return words;
}

}  // namespace tensord::supervisor
