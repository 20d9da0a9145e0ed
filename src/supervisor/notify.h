// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>

namespace tensord::supervisor {

// Tells systemd (or who speaks its protocol) a state such as "READY=1", as sd_notify(3) does.
// `socket` is the value of NOTIFY_SOCKET; with "" nothing is sent. Best effort: it never blocks.
void NotifyServiceManager(std::string_view socket, std::string_view state);

}  // namespace tensord::supervisor
