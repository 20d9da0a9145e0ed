// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <atomic>

namespace tensord::obs {

// A series that is made when it is first asked for.
// Threads: safe from any; `make` gives the same one whoever asks.
template <typename Series>
class Lazy {
 public:
  template <typename Make>
  Series& Get(const Make& make) {
    Series* series = at_.load(std::memory_order_acquire);
    if (series == nullptr) {
      series = &make();
      at_.store(series, std::memory_order_release);
    }
    return *series;
  }
  Series* get() const { return at_.load(std::memory_order_acquire); }

 private:
  std::atomic<Series*> at_ = nullptr;
};

}  // namespace tensord::obs
