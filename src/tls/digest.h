// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tensord::tls {

using Digest = std::array<uint8_t, 32>;

Digest Sha256(std::string_view text);
// Takes the same time wherever they differ.
bool SameDigest(const Digest& a, const Digest& b);

}  // namespace tensord::tls
