// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "config/server_options.h"
#include "supervisor/front_sockets.h"

namespace tensord::serve {

// The front's whole life: builds the server around the sockets, says kFrontReady to the supervisor
// once it accepts, serves until kDrain, and gives the exit code of the process. Any code it gives
// ends the server with that code; a crash has the supervisor start the front again.
// REQUIRES: the log is started; called once, in the only thread of the process.
int RunFront(const config::ServerOptions& options, const supervisor::FrontSockets& sockets);

}  // namespace tensord::serve
