// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "tensor/signature.h"

#include <algorithm>

namespace tensord::tensor {
namespace {

// REQUIRES: items sorted by name.
template <typename Item>
int IndexByName(const std::vector<Item>& items, std::string_view name) {
  const auto at =
      std::lower_bound(items.begin(), items.end(), name,
                       [](const Item& item, std::string_view n) { return item.name < n; });
  return at != items.end() && at->name == name ? static_cast<int>(at - items.begin()) : -1;
}

}  // namespace

int Signature::InputIndex(std::string_view input) const { return IndexByName(inputs, input); }
int Signature::OutputIndex(std::string_view output) const { return IndexByName(outputs, output); }

int SignatureIndex(const SignatureList& signatures, std::string_view name) {
  return IndexByName(signatures, name);
}

}  // namespace tensord::tensor
