// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/start_check.h"

#include "front/handlers/access_log.h"

namespace tensord::serve {

absl::Status CheckStart(const config::ServerOptions& options) {
  if (options.access_log.empty()) return absl::OkStatus();
  return front::CheckAccessLog(options.access_log);
}

}  // namespace tensord::serve
