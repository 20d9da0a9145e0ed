// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

namespace tensord::tls {

// What a port needs to speak TLS, as PEM text.
struct Material {
  std::string key = {};          // Private key.
  std::string certificate = {};  // The chain, the server's own first.
  std::string client_ca = {};    // Who may have signed clients; empty: the system's authorities.
  bool verify_client = false;    // A client without a valid certificate is refused.

  bool operator==(const Material&) const = default;
};

}  // namespace tensord::tls
