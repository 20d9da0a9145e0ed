// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/secure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstring>

#include "base/text.h"

namespace tensord::bench {
namespace {

bool IsIpAddress(const std::string& host) {
  std::array<char, sizeof(in6_addr)> bytes{};
  return inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

// The oldest error that OpenSSL keeps for this thread, in its words.
std::string LastError() {
  const char* const words = ERR_reason_error_string(ERR_peek_error());
  ERR_clear_error();
  return words == nullptr ? "" : words;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TlsClient>> TlsClient::Create(std::string host,
                                                                   const std::string& ca_file,
                                                                   std::string_view protocol) {
  Context context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr) return absl::InternalError("TLS cannot be set up");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (ca_file.empty()) {
    SSL_CTX_set_default_verify_paths(context.get());
  } else if (SSL_CTX_load_verify_locations(context.get(), ca_file.c_str(), nullptr) != 1) {
    return absl::InvalidArgumentError(base::Cat(
        "--ca ", ca_file, " holds no certificates in PEM form that can be read: ", LastError()));
  }
  const std::string offer = base::Cat(static_cast<char>(protocol.size()), protocol);
  SSL_CTX_set_alpn_protos(context.get(), reinterpret_cast<const unsigned char*>(offer.data()),
                          static_cast<unsigned>(offer.size()));
  return std::shared_ptr<const TlsClient>(new TlsClient(std::move(host), std::move(context)));
}

SSL* TlsClient::NewSession(int fd) const {
  SSL* const session = SSL_new(context_.get());
  if (session == nullptr) return nullptr;
  SSL_set_fd(session, fd);
  SSL_set_connect_state(session);
  if (IsIpAddress(host_)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host_.c_str());
  } else {
    SSL_set1_host(session, host_.c_str());
    SSL_set_tlsext_host_name(session, host_.c_str());
  }
  return session;
}

SecureStream::Result SecureStream::ResultOf(int code) {
  switch (SSL_get_error(session_.get(), code)) {
    case SSL_ERROR_WANT_READ:
      return Result::kWantRead;
    case SSL_ERROR_WANT_WRITE:
      return Result::kWantWrite;
    case SSL_ERROR_ZERO_RETURN:
      why_ = "the server closed the connection";
      return Result::kEnded;
    default:
      break;
  }
  const int64_t checked = SSL_get_verify_result(session_.get());
  if (checked != X509_V_OK) {
    ERR_clear_error();
    why_ = base::Cat(
        "TLS: the server's certificate is not accepted: ", X509_verify_cert_error_string(checked),
        " (--ca names the authorities to trust)");
    return Result::kEnded;
  }
  const int system_error = errno;
  const std::string words = LastError();
  why_ = base::Cat("TLS: ", !words.empty()      ? std::string_view(words)
                            : system_error != 0 ? std::string_view(std::strerror(system_error))
                                                : "the server closed the connection");
  return Result::kEnded;
}

SecureStream::Result SecureStream::Handshake() {
  if (session_ == nullptr) {
    why_ = "no memory for TLS";
    return Result::kEnded;
  }
  ERR_clear_error();
  const int code = SSL_do_handshake(session_.get());
  return code == 1 ? Result::kDone : ResultOf(code);
}

SecureStream::Result SecureStream::Read(char* out, size_t size_max, size_t* size) {
  ERR_clear_error();
  const int code = SSL_read_ex(session_.get(), out, size_max, size);
  return code == 1 ? Result::kDone : ResultOf(code);
}

SecureStream::Result SecureStream::Write(std::string_view bytes, size_t* size) {
  ERR_clear_error();
  const int code = SSL_write_ex(session_.get(), bytes.data(), bytes.size(), size);
  return code == 1 ? Result::kDone : ResultOf(code);
}

}  // namespace tensord::bench
