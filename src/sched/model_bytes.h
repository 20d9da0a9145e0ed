// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/byte_budget.h"

namespace tensord::sched {

// What the calls of one model may hold of the memory for requests: a reserve that is its own, and
// then what all models share. So a model that is hot cannot keep another from being served.
//
// Threads: the model's home loop; `shared` is safe from any. Lifetime: `shared` outlives it.
class ModelBytes {
 public:
  ModelBytes(uint64_t reserve, base::ByteBudget* shared) : reserve_(reserve), shared_(shared) {}

  // A model that holds nothing may hold anything: what is there already costs no more memory.
  bool TryTake(uint64_t bytes) {
    const uint64_t more = Over(used_ + bytes) - Over(used_);
    const bool shared = shared_->TryTake(more);
    if (!shared && used_ > 0) return false;
    if (!shared) unshared_ += more;
    used_ += bytes;
    return true;
  }
  // REQUIRES: that many were taken.
  void Return(uint64_t bytes) {
    uint64_t less = Over(used_) - Over(used_ - bytes);
    used_ -= bytes;
    const uint64_t first = std::min(less, unshared_);
    unshared_ -= first;
    shared_->Return(less - first);
  }
  uint64_t used() const { return used_; }

 private:
  uint64_t Over(uint64_t bytes) const { return bytes > reserve_ ? bytes - reserve_ : 0; }

  const uint64_t reserve_;
  base::ByteBudget* const shared_;
  uint64_t used_ = 0;
  uint64_t unshared_ = 0;  // Of a first call that did not fit.
};

// Some bytes of a model; destroying it gives them back.
class ModelBytesHeld {
 public:
  ModelBytesHeld() = default;
  // REQUIRES: `bytes` were taken.
  ModelBytesHeld(std::shared_ptr<ModelBytes> model, uint64_t bytes)
      : model_(std::move(model)), bytes_(bytes) {}
  ModelBytesHeld(ModelBytesHeld&&) = default;
  ModelBytesHeld& operator=(ModelBytesHeld&& from) noexcept {
    if (this != &from) {
      Clear();
      model_ = std::move(from.model_);
      bytes_ = from.bytes_;
    }
    return *this;
  }
  ~ModelBytesHeld() { Clear(); }

  void Clear() {
    if (auto model = std::exchange(model_, nullptr); model != nullptr) model->Return(bytes_);
  }

 private:
  std::shared_ptr<ModelBytes> model_;  // Shared by the queues of all versions.
  uint64_t bytes_ = 0;
};

}  // namespace tensord::sched
