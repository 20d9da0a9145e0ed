// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "supervisor/front_sockets.h"

namespace tensord::supervisor {

// Where to listen. A port of 0 is off; one port for both has one socket, that of gRPC.
struct ListenOptions {
  int grpc_port = 0;
  int rest_port = 0;
  std::string unix_path{};
  int admin_port = 0;
  std::string admin_address{};
  std::string admin_unix_path{};
  std::string bind_address{};  // Empty: gRPC on 0.0.0.0; REST on ::, or 0.0.0.0 without IPv6.
  int loops = 1;
  bool listen = true;  // False: only bind; the front listens when it is ready.
};

// Whether a UNIX socket can have its file there, another server's on it aside. Makes and removes
// nothing. FAILED_PRECONDITION in one sentence, as below; `option` is named.
absl::Status CheckUnixPath(const std::string& path, std::string_view option);

// The listening sockets, held for the life of the server so that no front's death closes a port.
// Owns: the sockets, and the UNIX sockets' files, which it removes at the end.
class Listeners {
 public:
  // Opens all or none. FAILED_PRECONDITION in one sentence: what is in the way, and what to do.
  static absl::StatusOr<Listeners> Open(const ListenOptions& options);

  // The numbers for the front's command line.
  FrontSockets ForFront() const;
  // All of them.
  std::vector<int> Descriptors() const;
  // "gRPC on 0.0.0.0:8500", one a listener: for the log.
  const std::vector<std::string>& descriptions() const { return descriptions_; }

 private:
  struct Loop {
    base::UniqueFd grpc;
    base::UniqueFd rest;
    base::UniqueFd unix;
    base::UniqueFd admin;
    base::UniqueFd admin_unix;
  };

  // The file of a UNIX socket made by us; removed at the end, unless another took its place.
  struct SocketFile {
    ~SocketFile();
    std::string path;
    dev_t device = 0;
    ino_t inode = 0;
  };

  Listeners() = default;
  absl::Status OpenTcp(const ListenOptions& options, base::UniqueFd Loop::*member);
  absl::Status OpenAdmin(const ListenOptions& options);
  // One socket, of the first loop; `protocol` and `option` for words.
  absl::Status OpenUnix(const std::string& path, std::string_view protocol, std::string_view option,
                        base::UniqueFd Loop::*member);

  bool listen_ = true;
  std::vector<Loop> loops_;
  std::vector<std::string> descriptions_;
  std::vector<std::unique_ptr<SocketFile>> socket_files_;
};

}  // namespace tensord::supervisor
