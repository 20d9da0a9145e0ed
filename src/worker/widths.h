// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "engine/engine.h"
#include "tensor/tensor.h"

namespace tensord::worker {

// CPU time so far.
struct CpuTimes {
  absl::Duration process;
  absl::Duration thread;  // Of the caller's thread alone.
};
CpuTimes ReadCpuTimes();

struct WidthOptions {
  std::string narrow_session_config;  // Empty: one width.
  uint64_t private_bytes = 0;         // Of this process, with the model in it.
  uint64_t private_bytes_max = 0;     // A larger one gets no second session.
  std::function<CpuTimes()> cpu_times = ReadCpuTimes;
};

struct WidthReport {
  bool two = false;  // The narrow session is there.
  std::vector<std::string> warnings;
  std::vector<tensor::Tensor> kept;  // Inputs that the runtime still reads.
};

// Opens the model's narrow session where that is of use: where a run on zeros of one row leaves a
// good part of its work to other threads. Where runs stay in their thread anyway, as those of small
// models do, nothing is opened. GPUs' models have one session: it is not the CPU that they share.
// REQUIRES: not stateful; no run is on its way.
WidthReport ChooseWidths(engine::Model& model, const WidthOptions& options);

}  // namespace tensord::worker
