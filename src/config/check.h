// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "config/server_options.h"

namespace tensord::config {

// Which command started the server; they differ in what is an error.
enum class Style { kServe, kOriginal };

// Start-up checks of what no single option can know: the original's, in its order and words, then
// options that are refused, combinations and ranges. Changes options only where the original goes
// on without one (REST on gRPC's port), and then appends a warning.
absl::Status CheckOptions(Style style, ServerOptions* options, std::vector<std::string>* warnings);

// Whether only programs of this machine reach that address.
bool IsLoopback(const std::string& address);

// Whether admin calls have a listener of their own.
bool HasAdminListener(const ServerOptions& options);

}  // namespace tensord::config
