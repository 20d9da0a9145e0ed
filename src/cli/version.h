// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "absl/status/status.h"

namespace tensord::cli {

// "0.1.0"
std::string OwnVersion();

// The version of the TensorFlow that workers would use, such as "2.21.0", or why there is none. The
// worker program finds and opens it, in about a second: this process must not map TensorFlow.
std::string RuntimeVersion(const std::string& library_dir);

// Both on stdout: "tensord 0.1.0", "TensorFlow 2.21.0".
void PrintVersions(const std::string& library_dir);

// Where the worker program is: beside this one.
std::string WorkerPath();

// Whether it can be started. FAILED_PRECONDITION says what is missing.
absl::Status CheckWorkerProgram();

}  // namespace tensord::cli
