// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "check/report.h"
#include "config/check.h"
#include "config/parse.h"
#include "config/platforms.h"
#include "config/text_files.h"

namespace tensord::check {

// Reads what the options name and looks at the directories; blocks as long as the disks do. Nothing
// is started or changed; ports are bound for a moment, to see whether they are free.
Report Gather(config::Style style, const config::CommandLine& line);

// A command line's parts on their own, for tests. What they find is appended.
void GatherFlags(const config::ServerOptions& options, Report* report);
void GatherPlatforms(const config::Platforms& platforms, Report* report);
void GatherModels(const std::vector<config::ModelEntry>& entries,
                  const config::Platforms& platforms, Report* report);

}  // namespace tensord::check
