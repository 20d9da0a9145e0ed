// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <memory>

#include "base/unique_fd.h"
#include "front/byte_stream.h"
#include "tls/credentials.h"

namespace tensord::front {

// The server's side of TLS on a connection. The handshake happens within its first reads and
// writes; one that fails is a failed connection. Null when memory is short. REQUIRES: as
// MakePlainStream; SIGPIPE is ignored.
std::unique_ptr<ByteStream> MakeTlsStream(const tls::Credentials& credentials,
                                          base::UniqueFd socket);

}  // namespace tensord::front
