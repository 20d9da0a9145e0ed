// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/tensorflow/c_api.h"
#include "tensor/tensor.h"

namespace tensord::engine {

// Counts the inputs of one run whose memory the runtime still refers to. Lives until the last is
// let go and the run itself has dropped it.
// Threads: the runtime lets go on any thread.
class InputHold {
 public:
  // With one reference, the run's own.
  static InputHold* Make() { return std::make_unique<InputHold>().release(); }

  bool held() const { return count_.load(std::memory_order_acquire) > 1; }
  void Add() { count_.fetch_add(1, std::memory_order_relaxed); }
  void Drop() {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) std::unique_ptr<InputHold>(this);
  }

 private:
  std::atomic<int> count_ = 1;
};

// The feeds of one run; deleted with the object.
class Feeds {
 public:
  explicit Feeds(const TensorFlowApi* api) : api_(api) {}
  ~Feeds() { Clear(); }
  Feeds(const Feeds&) = delete;
  Feeds& operator=(const Feeds&) = delete;

  // Over the view's own memory, counted in `hold`, unless `copies`; strings are always copied.
  // INVALID_ARGUMENT for bytes that do not fit dtype and shape: the runtime would abort.
  absl::Status Add(const tensor::TensorView& view, bool copies, InputHold* hold);
  TF_Tensor* const* data() const { return tensors_.data(); }
  void Clear();

 private:
  absl::StatusOr<TF_Tensor*> MakeString(const tensor::TensorView& view);
  absl::StatusOr<TF_Tensor*> MakeFixed(const tensor::TensorView& view, bool copies,
                                       InputHold* hold);

  const TensorFlowApi* const api_;
  std::vector<TF_Tensor*> tensors_;
};

}  // namespace tensord::engine
