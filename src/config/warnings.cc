// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "config/warnings.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"

namespace tensord::config {
namespace {

// Letters to insert, drop or replace to make one word from the other.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replace = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replace, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> NoEffectWarnings(const std::vector<const Option*>& given) {
  std::vector<std::string> warnings;
  for (const Option& option : OptionTable()) {
    if (option.state != OptionState::kNoEffect) continue;
    if (std::find(given.begin(), given.end(), &option) == given.end()) continue;
    warnings.push_back(base::Cat("--", option.name, " has no effect: ", option.note));
  }
  return warnings;
}

std::string_view NearestName(std::string_view name, std::span<const std::string_view> names) {
  constexpr size_t kNameBytesMax = 100;  // Longer is no typing error, and the work is quadratic.
  if (name.size() > kNameBytesMax) return "";
  std::string_view nearest;
  size_t best = std::max<size_t>(2, name.size() / 2) + 1;
  for (const std::string_view known : names) {
    const size_t distance = EditDistance(name, known);
    if (distance >= best) continue;
    best = distance;
    nearest = known;
  }
  return nearest;
}

std::string_view NearestOption(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Option& option : OptionTable()) names.push_back(option.name);
  return NearestName(name, names);
}

}  // namespace tensord::config
