// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdio>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/log_options.h"
#include "config/parse.h"
#include "obs/log.h"
#include "serve/run_front.h"
#include "supervisor/front_sockets.h"

namespace tensord::cli {

int Front(const Arguments& arguments) {
  const auto sockets =
      supervisor::DecodeFrontSockets(arguments.empty() ? std::string() : arguments.back());
  if (!sockets.ok()) {
    std::fprintf(stderr, "tensord front is started by tensord serve only: %s\n",
                 std::string(base::Message(sockets.status())).c_str());
    return 2;
  }
  const config::CommandLine line =
      config::ParseServeStyle("tensord front", {arguments.begin(), arguments.end() - 1});
  if (line.exit_code.has_value()) {
    std::fprintf(stderr, "%s%s", line.out.c_str(), line.err.c_str());
    return *line.exit_code;
  }
  obs::StartLog(LogOptionsOf(line.options, "front"));
  return serve::RunFront(line.options, *sockets);
}

}  // namespace tensord::cli
