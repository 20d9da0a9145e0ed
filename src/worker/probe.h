// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tensord::worker {

// What came of one thing that a confined worker must not be able to do.
struct Attempt {
  std::string act;  // "open /etc/passwd", "socket of family 2".
  bool refused = false;
  std::string seen;  // "EACCES", or what was possible.
};

// Tries them all, in this process, so that nothing needs to be taken on trust. Harmless where it
// succeeds: what is opened is closed, what is made is removed, nobody is signalled.
std::vector<Attempt> TryForbiddenActs(std::string_view model_directory);

// "probe: 34 of 34 forbidden acts refused", or one line with the number and one for each act that
// was possible.
std::vector<std::string> Summarize(const std::vector<Attempt>& attempts);

}  // namespace tensord::worker
