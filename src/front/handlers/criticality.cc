// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/criticality.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "base/text.h"

namespace tensord::front {
namespace {

constexpr std::string_view kHeader = "tensord-criticality";

constexpr std::pair<std::string_view, tensor::Criticality> kNames[] = {
    {"critical-plus", tensor::Criticality::kCriticalPlus},
    {"critical", tensor::Criticality::kCritical},
    {"sheddable-plus", tensor::Criticality::kSheddablePlus},
    {"sheddable", tensor::Criticality::kSheddable},
};

tensor::Criticality OfPriority(uint64_t priority) {
  if (priority == 0) return tensor::Criticality::kCritical;
  return kNames[std::min<uint64_t>(priority, std::size(kNames)) - 1].second;
}

}  // namespace

absl::StatusOr<tensor::Criticality> CriticalityOf(const RequestHead& head, uint64_t priority) {
  const std::optional<std::string_view> text = head.Find(kHeader);
  if (!text.has_value()) return OfPriority(priority);
  for (const auto& [name, value] : kNames) {
    if (base::EqualsIgnoringCase(*text, name)) return value;
  }
  return absl::InvalidArgumentError(base::Cat(
      kHeader, " \"", text->substr(0, 40),
      "\" is unknown: use critical-plus, critical (the default), sheddable-plus or sheddable"));
}

}  // namespace tensord::front
