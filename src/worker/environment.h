// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string_view>

namespace tensord::worker {

// True for the variables that a runtime reads: TF_*, CUDA_*, NVIDIA_*, XLA_FLAGS, OMP_*, KMP_*,
// MALLOC_*, LD_LIBRARY_PATH and what is like them. "NAME" or "NAME=value".
bool KeepsVariable(std::string_view variable);

// Drops every other variable from this process's environment and overwrites its text where the
// kernel laid it: a model can read its own memory, and must not find keys there.
// REQUIRES: one thread.
void DropForeignVariables();

}  // namespace tensord::worker
