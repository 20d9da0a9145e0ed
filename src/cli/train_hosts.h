// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/commands.h"
#include "cli/train_options.h"
#include "train/ssh.h"

namespace tensord::cli {

// `own` without the options, and their values, that say where machines are: each agent gets its
// own.
Arguments WithoutPlaces(const Arguments& own);

// What `tensord train --hosts` starts by SSH. INVALID_ARGUMENT for options that do not go with it.
absl::StatusOr<train::SshSetup> SettleHosts(const TrainOptions& options, const Arguments& own,
                                            const Arguments& program);

}  // namespace tensord::cli
