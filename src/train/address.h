// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

// Names and addresses of machines.
namespace tensord::train {

// "host:port" or "[::1]:port". INVALID_ARGUMENT says what was expected.
absl::StatusOr<std::pair<std::string, int>> SplitAddress(std::string_view address);

// A non-blocking socket whose connect has begun. NOT_FOUND: the name does not resolve (yet).
// A host name is looked up, which may take the resolver's time.
absl::StatusOr<base::UniqueFd> StartConnect(const std::string& address);

// Our end's address of a connected socket, or the other end's.
std::string LocalHost(int socket);
// The network interface of this machine by which `host` is reached, or that has its address; "" for
// loopback and where none is found.
std::string InterfaceTo(const std::string& host);
// Whether this machine has the address that the name stands for.
bool IsOurAddress(const std::string& host);
// The machine's name.
std::string HostName();
// With its domain, where /etc/hosts or DNS knows it, as in a pod of a headless service.
std::string FullHostName();

}  // namespace tensord::train
