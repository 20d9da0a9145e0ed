// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/exchange.h"

namespace tensord::front {

std::optional<std::string_view> RequestHead::Find(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return std::nullopt;
}

}  // namespace tensord::front
