// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "base/check.h"
#include "config/server_options.h"
#include "obs/log.h"

namespace tensord::cli {

// REQUIRES: the options come from a parser, which takes only known words for the level.
inline obs::LogOptions LogOptionsOf(const config::ServerOptions& options, std::string process) {
  obs::LogOptions log{
      .json = options.log_format == "json", .process = std::move(process), .background = true};
  TENSORD_CHECK(obs::ParseLevel(options.log_level, &log.level).ok());
  return log;
}

}  // namespace tensord::cli
