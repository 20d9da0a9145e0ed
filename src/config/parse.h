// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/server_options.h"

// Command lines to ServerOptions, in two styles. Pure: nothing is printed here.
namespace tensord::config {

struct CommandLine {
  ServerOptions options;
  std::vector<std::string> warnings;  // For the log, a line each: options without effect.
  std::string out;                    // To print on stdout before anything else.
  std::string err;                    // Likewise on stderr.
  std::optional<int> exit_code;       // Set: print, then end with it.
};

// As tensorflow_model_server reads its flags: `--name=value` only, for a bool also `--name`; a flag
// that is not known, or an argument that is none, is reported with the usage and start-up goes on;
// a value that cannot be read, or --help before any such argument, prints the usage and ends with
// 255.
CommandLine ParseOriginalStyle(std::string_view program, const std::vector<std::string>& arguments);

// `--name=value` and `--name value`, for a bool also `--name`. What is not known ends with 2, and
// names the nearest option that is. --help prints all options by group and ends with 0.
CommandLine ParseServeStyle(std::string_view program, const std::vector<std::string>& arguments);

}  // namespace tensord::config
