// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tensord::wire {

// What stands behind each slash, still encoded; the first character is a slash.
std::vector<std::string_view> SplitPath(std::string_view path);

// A segment of a URL's path without its percent signs, as libcurl decodes it: what is not a percent
// sign and two hex digits stays.
std::string PercentDecode(std::string_view text);

}  // namespace tensord::wire
