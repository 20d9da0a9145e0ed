// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace tensord::train {

// A TCP port that nobody else gets while this lives, and that a rank can take over meanwhile:
// sockets that are bound with SO_REUSEADDR share a port as long as only one listens, and gRPC's
// server sets it. Owns: the socket.
class ReservedPort {
 public:
  static absl::StatusOr<ReservedPort> Take();

  int port() const { return port_; }
  // Answers connects, so that other machines can try the way; REQUIRES: no rank runs yet.
  absl::Status Listen();
  // Bound, and not listening any more.
  void StopListening();

 private:
  ReservedPort(base::UniqueFd socket, int port) : socket_(std::move(socket)), port_(port) {}

  base::UniqueFd socket_;
  int port_;
};

// Tries to connect to each, all at once; for those that fail "host:port: why".
std::vector<std::string> Unreachable(const std::vector<std::string>& addresses);

}  // namespace tensord::train
