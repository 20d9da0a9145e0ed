// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace tensord::channel {

// What one receive gave.
struct Packet {
  std::string bytes;
  std::vector<base::UniqueFd> descriptors;
};

// One end of a SOCK_SEQPACKET pair: whole records, with descriptors riding along, in order.
// Threads: Send and Receive are each safe from any thread (the kernel keeps records whole).
class PacketSocket {
 public:
  explicit PacketSocket(base::UniqueFd fd) : fd_(std::move(fd)) {}

  // Both ends, close-on-exec. INTERNAL when the kernel has no descriptors left.
  static absl::StatusOr<std::pair<PacketSocket, PacketSocket>> Pair();

  // Blocks only on a blocking socket. UNAVAILABLE: the peer is gone. RESOURCE_EXHAUSTED: a
  // non-blocking socket's buffer is full. INVALID_ARGUMENT: larger than the kernel takes.
  absl::Status Send(std::string_view bytes, const std::vector<int>& descriptors = {}) const;

  // The next record, at most `bytes_max` long, with at most `descriptors_max` descriptors.
  // UNAVAILABLE: the peer is gone. NOT_FOUND: a non-blocking socket has none waiting.
  // INVALID_ARGUMENT: the record was longer, or carried more descriptors; it is dropped.
  absl::StatusOr<Packet> Receive(size_t bytes_max, size_t descriptors_max) const;

  void SetNonBlocking() const;
  int fd() const { return fd_.get(); }

 private:
  base::UniqueFd fd_;
};

}  // namespace tensord::channel
