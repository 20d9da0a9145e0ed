// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "absl/status/status.h"
#include "config/server_options.h"

namespace tensord::serve {

// What a front refuses when it starts, beside options and files that are read (config/check.h,
// config/text_files.h). Makes nothing.
absl::Status CheckStart(const config::ServerOptions& options);

}  // namespace tensord::serve
