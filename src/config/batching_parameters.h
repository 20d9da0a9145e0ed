// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "absl/status/statusor.h"
#include "config/platforms.h"
#include "tensord/session_bundle_config.pb.h"

namespace tensord::config {

// INVALID_ARGUMENT, in the original's words where it has some, for what would fail a model there or
// here. REQUIRES: warnings is not null.
absl::StatusOr<BatchingParameters> ToBatchingParameters(
    const tensorflow::serving::BatchingParameters& file, Warnings* warnings);

}  // namespace tensord::config
