// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "config/server_options.h"
#include "supervisor/front_sockets.h"

namespace tensord::serve {

// The front process: serves until it is told to drain, and gives the process's exit code: 0 after a
// drain, 1 when it cannot start, 255 when it was started as the original and a model failed.
int RunFront(const config::ServerOptions& options, const supervisor::FrontSockets& sockets);

}  // namespace tensord::serve
