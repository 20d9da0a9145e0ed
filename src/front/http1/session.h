// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "front/link.h"
#include "front/session.h"

namespace tensord::front {

// HTTP/1.1 and 1.0: keep-alive, pipelining, chunked bodies, 100-continue. One request at a time;
// those behind it wait in the connection, so answers leave in order.
// Lifetime: `link` outlives it.
std::unique_ptr<Session> MakeHttp1Session(Link* link);

}  // namespace tensord::front
