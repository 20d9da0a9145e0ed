// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"

namespace tensord::models {

// Who holds how much memory, by worker, model and server, and whether one more worker fits. A
// worker is held at its estimate until it is measured. Pure bookkeeping, rebuilt for each decision.
class Ledger {
 public:
  // What a worker will take: TensorFlow Serving's 1.2 x the files, and what any worker takes.
  static uint64_t Estimate(uint64_t file_bytes);

  explicit Ledger(uint64_t server_bytes_max) : server_bytes_max_(server_bytes_max) {}

  void Add(const std::string& model, uint64_t bytes);

  struct Request {
    std::string model;
    int64_t version = 0;
    uint64_t bytes = 0;
    uint64_t worker_bytes_max = 0;  // 0: no limit.
    uint64_t model_bytes_max = 0;   // 0: no limit.
  };
  // RESOURCE_EXHAUSTED "Insufficient resources to load servable {name: m version: 2}: ...", with
  // the numbers and the limit that was met.
  absl::Status Admit(const Request& request) const;

  uint64_t server_bytes() const { return server_bytes_; }

 private:
  const uint64_t server_bytes_max_;  // 0: no limit.
  uint64_t server_bytes_ = 0;
  std::map<std::string, uint64_t> model_bytes_;
};

// "1.25 GiB", for messages.
std::string BytesText(uint64_t bytes);

}  // namespace tensord::models
