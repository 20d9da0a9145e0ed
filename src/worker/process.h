// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "engine/engine.h"

namespace tensord::worker {

// What workers run their models with, as the zygote opened it.
struct Equipment {
  std::string directory;  // Of the runtime's files, which a worker may read.
  std::function<std::unique_ptr<engine::Engine>()> make_engine;  // In the worker.
};

// What a new worker process starts with; the descriptors come from the front through the zygote.
struct ProcessParts {
  uint64_t incarnation = 0;
  pid_t supervisor = 0;  // Who becomes this process's parent.
  base::UniqueFd channel;
  base::UniqueFd request;   // The request segment.
  base::UniqueFd response;  // The response segment.
  base::UniqueFd out;       // Becomes stdout.
  base::UniqueFd err;       // Becomes stderr.
  base::UniqueFd adopted;   // Reads as ended once the supervisor is the parent.
};

// The life of a worker, right after the fork that made it. Ends the process.
// REQUIRES: one thread; no function of the runtime was called.
[[noreturn]] void RunWorkerProcess(const Equipment& equipment, ProcessParts parts);

}  // namespace tensord::worker
