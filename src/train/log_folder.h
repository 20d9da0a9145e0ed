// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

// Where the output of a run's ranks is kept. Others may have been in the temporary folder first.
namespace tensord::train {

// A run's name becomes part of file names: 1 to 64 letters, digits, '.', '_' and '-', the first of
// them no '.' or '-'.
absl::Status CheckRunId(std::string_view run_id);

// Makes a folder that only this user may enter. One that is there already must be no link, belong
// to this user, and be closed to others' writing: who has made it can be told what to write.
absl::Status MakeOwnFolder(const std::string& path);

// For appending; made if need be. Neither the file nor the folder that it is in may be a link, as
// others may have laid one there; never left to child processes.
absl::StatusOr<base::UniqueFd> OpenToAppend(const std::string& path);

}  // namespace tensord::train
