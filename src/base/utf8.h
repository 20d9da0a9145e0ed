// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>

namespace tensord::base {

// The text with every byte that is not UTF-8 replaced by '?'. A proto3 string must be UTF-8, or the
// client cannot parse the whole answer, and words of a runtime or a file need not be.
std::string ToUtf8(std::string_view text);

}  // namespace tensord::base
