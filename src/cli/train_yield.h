// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "cli/train_options.h"
#include "train/yield.h"

namespace tensord::cli {

// How a job looks at the server of --yield-to: by the page of metrics that `tensord top` reads.
train::YieldSetup YieldOf(const TrainOptions& options);

}  // namespace tensord::cli
