// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

// Which requests a load consists of. Pure.
namespace tensord::bench {

// One kind of request, as a user writes it:
//   NAME[=WEIGHT[:FILE]] [model=M] [signature=S] [method=predict|classify|regress]
//     [input=name:type:dims]... [path=P] [deadline_ms=N] [criticality=C] [header=name:value]...
struct MixEntry {
  std::string name = {};  // In reports; the model, too, when none is given.
  double weight = 1;      // Its share is this by the sum of all.
  std::string file = {};  // Empty: made from the inputs, or from what the server says of the model.
  std::string model = {};
  std::string signature = {};
  std::string method = "predict";
  std::vector<std::string> inputs = {};
  std::string path = {};
  std::optional<absl::Duration> deadline = {};
  std::string criticality = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// INVALID_ARGUMENT says which part is wrong and what was expected.
absl::StatusOr<MixEntry> ParseMixEntry(std::string_view text);
// A line an entry; empty lines and those that begin with '#' are skipped. Names the line.
absl::StatusOr<std::vector<MixEntry>> ParseMixText(std::string_view text);
// "name:value", lower case, as HTTP/2 wants it.
absl::StatusOr<std::pair<std::string, std::string>> ParseHeader(std::string_view text);

// Weights of the ranks 1..count: 1 / rank^exponent.
std::vector<double> ZipfWeights(size_t count, double exponent);

// Draws an index with the probability of its weight. REQUIRES: weights >= 0, one of them above 0.
class Choice {
 public:
  explicit Choice(const std::vector<double>& weights);
  size_t Draw(std::mt19937_64& random) const;

 private:
  std::vector<double> up_to_;  // Sums of the weights up to each.
};

}  // namespace tensord::bench
