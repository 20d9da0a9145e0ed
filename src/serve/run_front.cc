// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/run_front.h"

#include <sys/prctl.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/text.h"
#include "obs/log.h"
#include "serve/server.h"

namespace tensord::serve {

int RunFront(const config::ServerOptions& options, const supervisor::FrontSockets& sockets) {
  prctl(PR_SET_NAME, "tensord-front", 0, 0, 0);  // Not "exe", as it was started.
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Create(options, sockets);
  if (!server.ok()) {
    obs::Error("cannot start: {}", base::Message(server.status()));
    return 1;
  }
  const int code = (*server)->Run();
  // Every promise to a client is kept or its connection closed; the kernel frees the rest faster
  // than destructors could, and a thread that hangs in a file system cannot hold the exit up.
  obs::FlushLog(limits::kLogFlushMax);
  _exit(code);
}

}  // namespace tensord::serve
