// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "config/file_texts.h"
#include "config/server_options.h"
#include "tls/credentials.h"
#include "tls/material.h"

// --ssl_config_file (the original's, for gRPC) and --tls_certificate_file with its companions.
namespace tensord::config {

// What each TCP port speaks TLS with; none: plain bytes. UNIX sockets are always plain.
struct TlsPorts {
  std::optional<tls::Material> grpc = {};
  std::optional<tls::Material> rest = {};
  std::optional<tls::Material> admin = {};  // As the PEM files say.

  bool operator==(const TlsPorts&) const = default;
};

// Reads the files (`texts`: see file_texts.h; null: from the disk). INVALID_ARGUMENT or NOT_FOUND
// names option and file; whether the PEM texts are what they should be, CheckTls tells.
absl::StatusOr<TlsPorts> LoadTls(const ServerOptions& options, FileTexts* texts = nullptr);

// Whether keys and certificates can be used.
absl::Status CheckTls(const TlsPorts& ports);

// With one port for both protocols, that of gRPC counts for it.
tls::Alpn GrpcAlpn(const ServerOptions& options);

}  // namespace tensord::config
