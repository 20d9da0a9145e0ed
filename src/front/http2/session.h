// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "front/link.h"
#include "front/session.h"

namespace tensord::front {

// HTTP/2 with prior knowledge, for gRPC and plain requests alike.
// Lifetime: `link` outlives it.
std::unique_ptr<Session> MakeHttp2Session(Link* link);

}  // namespace tensord::front
