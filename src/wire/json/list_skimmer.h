// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

namespace tensord::wire {

// What was counted in a nest of lists.
struct ListCounts {
  uint64_t commas = 0;        // Anywhere inside.
  uint64_t outer_commas = 0;  // Between the elements of the outermost list.
  uint64_t depth_max = 0;     // 1 for a list without lists.
};

// Finds the end of a nest of lists by its brackets alone, 64 bytes a step. `at` stands at its '['.
// Returns the byte behind its ']'; null when a quotation mark or a brace comes before, or the text
// ends.
const char* SkimLists(const char* at, const char* end, ListCounts* counts);

}  // namespace tensord::wire
