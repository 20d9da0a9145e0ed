// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace tensord::train {

// Copies the SavedModel in `from` into `model_dir`, a server's folder of versions, as the next
// version, and gives its path. A server sees it whole or not at all: the copy is made under a name
// that is no version, written through to the disk, checked, and then renamed.
// FAILED_PRECONDITION when `from` is no complete SavedModel.
absl::StatusOr<std::string> Publish(const std::string& from, const std::string& model_dir);

}  // namespace tensord::train
