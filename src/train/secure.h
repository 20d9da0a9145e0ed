// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

// TLS between agents: each proves itself by a certificate of the job's own authority.
namespace tensord::train {

// Files in PEM, on every machine.
struct SecureFiles {
  std::string certificate = {};
  std::string key = {};
  std::string authority = {};

  bool given() const { return !certificate.empty(); }
};

// One connection's TLS on a socket that does not wait. Threads: one at a time.
class SecureStream {
 public:
  SecureStream(SSL* session, int socket, bool accepts);

  // As recv and send: the first call makes the handshake, -1 with EAGAIN means later, and with
  // EPROTO that it failed, error() says why.
  ssize_t Read(char* bytes, size_t size);
  ssize_t Write(const char* bytes, size_t size);
  // What was decrypted and not read yet: no event of the socket will tell of it.
  bool pending() const { return SSL_pending(session_.get()) > 0; }
  // The last EAGAIN waits for the socket to take bytes, not to bring some.
  bool wants_write() const { return wants_write_; }
  const std::string& error() const { return error_; }

 private:
  struct Freer {
    void operator()(SSL* session) const { SSL_free(session); }
  };
  ssize_t Result(int got);

  const std::unique_ptr<SSL, Freer> session_;
  bool wants_write_ = false;
  std::string error_;
};

// What all connections of one agent share.
class SecureSide {
 public:
  // INVALID_ARGUMENT names the file that cannot be used.
  static absl::StatusOr<std::unique_ptr<SecureSide>> Create(const SecureFiles& files);

  std::unique_ptr<SecureStream> Accept(int socket) const;
  // `host`: whom the other's certificate must be for.
  std::unique_ptr<SecureStream> Connect(int socket, const std::string& host) const;

 private:
  struct Freer {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  explicit SecureSide(SSL_CTX* context) : context_(context) {}

  const std::unique_ptr<SSL_CTX, Freer> context_;
};

}  // namespace tensord::train
