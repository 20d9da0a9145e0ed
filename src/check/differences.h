// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tensord::check {

// One row of docs/differences.md.
struct Difference {
  std::string area;  // The section's title.
  std::string what;
  std::string original;
  std::string ours;
  std::string why;
};

// What of a deployment decides which rows concern it.
struct Uses {
  bool rest = false;
  bool labels = false;
};

// INVALID_ARGUMENT names the line that is no row of four cells.
absl::StatusOr<std::vector<Difference>> ParseDifferences(std::string_view page);

// The rows of the page that clients of tensorflow_model_server find in a deployment. Rows of areas
// that we do not know always are.
std::vector<Difference> DifferencesFor(const Uses& uses);

// The page as it was when the program was built.
extern const std::string_view kDifferencesPage;

}  // namespace tensord::check
