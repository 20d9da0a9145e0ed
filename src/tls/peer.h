// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <openssl/ssl.h>

#include <string>
#include <vector>

namespace tensord::tls {

// The names in the certificate by which the client proved itself: its DNS names, e-mail addresses
// and URIs (subjectAltName), and its common name. Empty when it has none, or when the port does not
// verify clients. REQUIRES: the handshake is over.
std::vector<std::string> PeerNames(SSL* session);

}  // namespace tensord::tls
