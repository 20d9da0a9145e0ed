// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string_view>

namespace tensord::engine {

// True for an operation (by its op name) of straight-line arithmetic: what it computes follows the
// same formula whatever the values are. Whether such a graph keeps the rows of a batch apart shows
// on any values that are not special, so a run with random ones can tell. Loops, branches,
// data-dependent shapes, reductions of truth values, random numbers and operations that are not
// known are not plain.
bool IsPlainOp(std::string_view op);

}  // namespace tensord::engine
