// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "channel/record.h"

namespace tensord::worker {

// How a worker gives up its rights, as a seam: tests of the loop keep theirs.
// Threads: BeforeLoad runs while the process has one thread; AfterLoad runs on any.
class Confinement {
 public:
  virtual ~Confinement() = default;
  // Before the model is read. One line a layer, with what was observed.
  virtual std::vector<std::string> BeforeLoad(const channel::LoadRecord& record) = 0;
  // When the model is loaded and warm: gives up what only loading needed, in every thread.
  virtual std::vector<std::string> AfterLoad() = 0;
};

}  // namespace tensord::worker
