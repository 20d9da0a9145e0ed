// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "channel/record.h"

namespace tensord::worker {

// What a worker gave up before it read its model.
struct Confined {
  std::vector<std::string> lines;  // One a layer, with what was observed.
  std::string grade;               // "A" to "D" (worker/grade.h).
  bool confined = true;            // False: the operator wants none of it.
  absl::Status status;             // Not OK: less than the record asks for; nothing may be loaded.
};

// How a worker gives up its rights, as a seam: tests of the loop keep theirs.
// Threads: BeforeLoad runs while the process has one thread; the others run on any.
class Confinement {
 public:
  virtual ~Confinement() = default;
  // Before the model is read: stage 1.
  virtual Confined BeforeLoad(const channel::LoadRecord& record) = 0;
  // When the model is loaded: gives up what only loading needed, in every thread.
  virtual std::vector<std::string> AfterLoad() = 0;
  // When it is warm: gives up all that its runs do not need, in every thread: stage 2.
  virtual channel::SealedRecord Seal() = 0;
};

}  // namespace tensord::worker
