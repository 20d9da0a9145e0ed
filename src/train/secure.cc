// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "train/secure.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "base/text.h"

namespace tensord::train {
namespace {

std::string LastError() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "no reason given" : reason;
}

absl::Status Unusable(std::string_view option, const std::string& path) {
  return absl::InvalidArgumentError(base::Cat(option, " ", path, ": ", LastError()));
}

}  // namespace

SecureStream::SecureStream(SSL* session, int socket, bool accepts) : session_(session) {
  SSL_set_fd(session, socket);
  if (accepts) {
    SSL_set_accept_state(session);
  } else {
    SSL_set_connect_state(session);
  }
}

ssize_t SecureStream::Result(int got) {
  wants_write_ = false;
  if (got > 0) return got;
  switch (SSL_get_error(session_.get(), got)) {
    case SSL_ERROR_WANT_WRITE:
      wants_write_ = true;
      [[fallthrough]];
    case SSL_ERROR_WANT_READ:
      errno = EAGAIN;
      return -1;
    case SSL_ERROR_ZERO_RETURN:
      return 0;
    default: {
      const int verified = static_cast<int>(SSL_get_verify_result(session_.get()));
      error_ = base::Cat(
          "TLS: ", verified == X509_V_OK ? LastError() : X509_verify_cert_error_string(verified));
      errno = EPROTO;
      return -1;
    }
  }
}

ssize_t SecureStream::Read(char* bytes, size_t size) {
  ERR_clear_error();
  return Result(SSL_read(session_.get(), bytes, static_cast<int>(size)));
}

ssize_t SecureStream::Write(const char* bytes, size_t size) {
  ERR_clear_error();
  return Result(SSL_write(session_.get(), bytes, static_cast<int>(size)));
}

absl::StatusOr<std::unique_ptr<SecureSide>> SecureSide::Create(const SecureFiles& files) {
  auto side = std::unique_ptr<SecureSide>(new SecureSide(SSL_CTX_new(TLS_method())));
  SSL_CTX* const context = side->context_.get();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);  // A killed agent says no farewell.
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  if (SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1) {
    return Unusable("--tls-cert", files.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return Unusable("--tls-key", files.key);
  }
  if (SSL_CTX_load_verify_file(context, files.authority.c_str()) != 1) {
    return Unusable("--tls-ca", files.authority);
  }
  return side;
}

std::unique_ptr<SecureStream> SecureSide::Accept(int socket) const {
  return std::make_unique<SecureStream>(SSL_new(context_.get()), socket, true);
}

std::unique_ptr<SecureStream> SecureSide::Connect(int socket, const std::string& host) const {
  SSL* const session = SSL_new(context_.get());
  // An address is compared as one; anything else is a name.
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host.c_str()) != 1) {
    SSL_set1_host(session, host.c_str());
    SSL_set_tlsext_host_name(session, host.c_str());
  }
  return std::make_unique<SecureStream>(session, socket, false);
}

}  // namespace tensord::train
