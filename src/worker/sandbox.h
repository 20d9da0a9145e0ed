// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "channel/record.h"
#include "worker/confinement.h"
#include "worker/grade.h"

namespace tensord::worker {

// What a worker may read besides its model's directory and its op libraries: the runtime, what
// shared libraries are loaded from, and the files that tell of processors, memory and time zones.
std::vector<std::string> ReadablePlaces(const std::string& runtime_directory,
                                        const channel::LoadRecord& record);

// The sandbox of a real worker process. Where a layer cannot be had (an old kernel, a container
// that forbids it) the worker runs on without it, and its description says so.
class Sandbox : public Confinement {
 public:
  struct Parts {
    std::string runtime_directory;
    pid_t supervisor = 0;    // Who must be the parent of this process.
    base::UniqueFd adopted;  // Reads as ended once it is.
    int channel_fd = -1;
  };

  explicit Sandbox(Parts parts) : parts_(std::move(parts)) {}

  // Ends the process when its supervisor is gone.
  Confined BeforeLoad(const channel::LoadRecord& record) override;
  std::vector<std::string> AfterLoad() override;
  channel::SealedRecord Seal() override;

 private:
  void AwaitAdoption();
  void Confine(const channel::LoadRecord& record, Observed* observed,
               std::vector<std::string>* lines);
  void LiveWithSupervisor() const;

  Parts parts_;
  bool enabled_ = true;
};

}  // namespace tensord::worker
