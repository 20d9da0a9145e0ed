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

bool SameEndpoints(const std::vector<Endpoint>& a, const std::vector<Endpoint>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const Endpoint& x, const Endpoint& y) {
        return x.name == y.name && x.dtype == y.dtype && x.shape == y.shape && x.dense == y.dense;
      });
}

}  // namespace

int Signature::InputIndex(std::string_view input) const { return IndexByName(inputs, input); }
int Signature::OutputIndex(std::string_view output) const { return IndexByName(outputs, output); }

int SignatureIndex(const SignatureList& signatures, std::string_view name) {
  return IndexByName(signatures, name);
}

bool SameCalls(const SignatureList& a, const SignatureList& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Signature& x, const Signature& y) {
                      return x.name == y.name && SameEndpoints(x.inputs, y.inputs) &&
                             SameEndpoints(x.outputs, y.outputs);
                    });
}

}  // namespace tensord::tensor
