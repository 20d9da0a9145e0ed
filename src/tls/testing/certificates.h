// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

namespace tensord::tls {

// Keys and certificates for tests, made on the spot.
struct Identity {
  std::string key;          // PEM.
  std::string certificate;  // PEM.
};

// Signs itself when `authority` is null. It was valid an hour ago and is for `days` more (negative:
// it is no longer).
Identity MakeIdentity(const std::string& name, const Identity* authority = nullptr, int days = 1);

}  // namespace tensord::tls
