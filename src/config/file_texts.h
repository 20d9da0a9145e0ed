// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <functional>
#include <map>
#include <string>

namespace tensord::config {

// What the files behind options say, by the option's name. A loader that gets one takes the texts
// that are there, and reads and adds those that are not: an empty one collects what was read, and a
// full one makes of it again what was made then, whatever lies on the disk now.
using FileTexts = std::map<std::string, std::string, std::less<>>;

}  // namespace tensord::config
