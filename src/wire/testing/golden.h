// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

// Text tables of tests/golden/: reading them, and tensors as text.
namespace tensord::wire::testing {

// One case: the word each line starts with, and the rest of the line.
struct GoldenLine {
  std::string word;
  std::string rest;
};
struct GoldenCase {
  std::string name;
  std::vector<GoldenLine> lines;
  std::string expect;  // What stands between `expect` and `end`.

  // The rest of the first line with that word; empty when there is none.
  std::string_view Find(std::string_view word) const;
};

// All lines of a file of tests/golden/ that are not comments or empty. Empty when it is missing.
std::vector<std::string> ReadGoldenLines(std::string_view file);
std::vector<GoldenCase> ReadGoldenCases(std::string_view file);

// "int32" or "INT32" as the runtime's names; kInvalid for an unknown one.
tensor::DType DTypeFromName(std::string_view name);

// "[2,1] 0.5 nan", "[1] \"a\\x01\"": shape and values, in nine or seventeen digits.
std::string ToText(const tensor::TensorView& tensor);
// The reverse, given the dtype.
tensor::Tensor FromText(tensor::DType dtype, std::string_view text);

}  // namespace tensord::wire::testing
