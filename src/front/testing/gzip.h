// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>

namespace tensord::front {

// What clients send compressed, and read: in one piece, by zlib itself.
std::string Gzip(std::string_view text);
std::string Zlib(std::string_view text);
// Of either form; "" when it is neither.
std::string Inflated(std::string_view packed);

}  // namespace tensord::front
