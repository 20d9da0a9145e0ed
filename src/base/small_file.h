// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

namespace tensord::base {

// What a file of /proc or /sys says now; "" when it cannot be read. A process may end between the
// opening of its file and the reading, and a stream makes an exception of that which nobody
// catches.
std::string SmallFile(const std::string& path);

}  // namespace tensord::base
