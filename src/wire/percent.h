// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>

namespace tensord::wire {

// A segment of a URL's path without its percent signs, as libcurl decodes it: what is not a percent
// sign and two hex digits stays.
std::string PercentDecode(std::string_view text);

}  // namespace tensord::wire
