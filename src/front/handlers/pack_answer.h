// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "front/deflater.h"

// Answers over REST that a client takes compressed.
namespace tensord::front {

// A smaller body gains less than its headers cost.
inline constexpr size_t kPackedBytesMin = 1024;
// Of outputs, where the answer is packed: as kLongOutputBytes, with a fifth of its speed.
inline constexpr size_t kLongPackedBytes = size_t{128} << 10;

// gzip before deflate; none where the header "accept-encoding" takes neither.
std::optional<Deflater::Format> AcceptedFormat(std::string_view accept_encoding);

// As content-encoding names it.
std::string_view FormatName(Deflater::Format format);

// None where it would be no smaller.
std::optional<std::string> Pack(Deflater::Format format, std::string_view body);

}  // namespace tensord::front
