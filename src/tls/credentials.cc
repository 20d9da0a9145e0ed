// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "tls/credentials.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <array>
#include <climits>
#include <ctime>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/text.h"

namespace tensord::tls {
namespace {

template <auto kFree>
struct FreeWith {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Bio = std::unique_ptr<BIO, FreeWith<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, FreeWith<X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;

// In the wire's form: each name behind its length.
constexpr std::string_view kHttp2Names = "\x02h2";
constexpr std::string_view kAllNames = "\x02h2\x08http/1.1";

// What OpenSSL says of the last failure, for people; empties its queue.
std::string Reason() {
  const unsigned long error = ERR_peek_last_error();  // NOLINT(google-runtime-int): OpenSSL's type.
  const char* const reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  ERR_clear_error();
  return reason == nullptr ? "no PEM block in it" : reason;
}

absl::Status Wrong(std::string_view what) {
  return absl::InvalidArgumentError(base::Cat(what, ": ", Reason()));
}

absl::StatusOr<Bio> Open(const std::string& pem) {
  if (pem.size() > INT_MAX) return absl::InvalidArgumentError("a PEM text of more than 2 GB");
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// No prompt on a terminal that nobody watches: an encrypted key is an error.
int NoPassword(char*, int, int, void*) { return -1; }

absl::StatusOr<PrivateKey> ReadKey(const std::string& pem) {
  ASSIGN_OR_RETURN(const Bio bio, Open(pem));
  PrivateKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr));
  if (key == nullptr) return Wrong("the private key cannot be read (it must have no password)");
  return key;
}

// All of a text, at least one.
absl::StatusOr<std::vector<Certificate>> ReadCertificates(const std::string& pem,
                                                          std::string_view what) {
  ASSIGN_OR_RETURN(const Bio bio, Open(pem));
  std::vector<Certificate> certificates;
  while (X509* const one = PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr)) {
    certificates.emplace_back(one);
  }
  const unsigned long error = ERR_peek_last_error();  // NOLINT(google-runtime-int): likewise.
  const bool at_end = ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  if (certificates.empty() || !at_end) return Wrong(base::Cat(what, " cannot be read"));
  ERR_clear_error();
  return certificates;
}

int ChooseAlpn(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in,
               unsigned int in_size, void* ours) {
  const auto* const names = static_cast<const std::string_view*>(ours);
  unsigned char* chosen = nullptr;
  const int result = SSL_select_next_proto(&chosen, out_size,
                                           reinterpret_cast<const unsigned char*>(names->data()),
                                           static_cast<unsigned int>(names->size()), in, in_size);
  *out = chosen;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

absl::Status UseCertificate(SSL_CTX* context, const std::vector<Certificate>& chain,
                            EVP_PKEY* key) {
  if (SSL_CTX_use_certificate(context, chain.front().get()) != 1) {
    return Wrong("the certificate cannot be used");
  }
  for (size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, chain[i].get()) != 1) {
      return Wrong("the certificate's chain cannot be used");
    }
  }
  if (SSL_CTX_use_PrivateKey(context, key) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return Wrong("key and certificate do not belong together");
  }
  return absl::OkStatus();
}

absl::Status DemandClients(SSL_CTX* context, const Material& material) {
  if (material.client_ca.empty()) {
    if (SSL_CTX_set_default_verify_paths(context) != 1) {
      return Wrong("the system's authorities cannot be read");
    }
  } else {
    ASSIGN_OR_RETURN(const std::vector<Certificate> authorities,
                     ReadCertificates(material.client_ca, "the clients' authority"));
    for (const Certificate& authority : authorities) {
      if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get()) != 1 ||
          SSL_CTX_add_client_CA(context, authority.get()) != 1) {
        return Wrong("the clients' authority cannot be used");
      }
    }
  }
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return absl::OkStatus();
}

// Limits and modes; what protocols we speak.
bool Tune(SSL_CTX* context, Alpn alpn) {
  // Sessions of one port are not taken up on another.
  static constexpr std::array<unsigned char, 8> kSessions = {'t', 'e', 'n', 's', 'o', 'r', 'd', 0};
  static constexpr std::string_view kHttp2Only = kHttp2Names;
  static constexpr std::string_view kAll = kAllNames;
  const std::string_view* const names = alpn == Alpn::kHttp2 ? &kHttp2Only : &kAll;
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE |
                                   SSL_OP_IGNORE_UNEXPECTED_EOF);  // HTTP tells what is cut.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);  // Idle connections hold no buffers.
  SSL_CTX_set_read_ahead(context, 1);                       // Header and record in one read.
  SSL_CTX_set_alpn_select_cb(context, ChooseAlpn, const_cast<std::string_view*>(names));
  return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
         SSL_CTX_set_session_id_context(context, kSessions.data(), kSessions.size()) == 1;
}

absl::Time ExpiryOf(const X509* certificate) {
  std::tm at{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &at) != 1) return absl::InfiniteFuture();
  return absl::FromTM(at, absl::UTCTimeZone());
}

std::string Describe(X509* certificate, absl::Time expires) {
  const Bio bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(certificate), 0, XN_FLAG_ONELINE);
  BIO_puts(bio.get(), ", serial ");
  i2a_ASN1_INTEGER(bio.get(), X509_get_serialNumber(certificate));
  char* text = nullptr;
  const auto size = static_cast<size_t>(BIO_get_mem_data(bio.get(), &text));
  return base::Cat(std::string_view(text, size), ", until ",
                   absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", expires, absl::UTCTimeZone()));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Credentials>> Credentials::Create(const Material& material,
                                                                       Alpn alpn) {
  ERR_clear_error();
  ASSIGN_OR_RETURN(const PrivateKey key, ReadKey(material.key));
  ASSIGN_OR_RETURN(const std::vector<Certificate> chain,
                   ReadCertificates(material.certificate, "the certificate"));
  Context context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr || !Tune(context.get(), alpn)) return Wrong("TLS cannot be set up");
  RETURN_IF_ERROR(UseCertificate(context.get(), chain, key.get()));
  if (material.verify_client) RETURN_IF_ERROR(DemandClients(context.get(), material));
  const absl::Time expires = ExpiryOf(chain.front().get());
  std::string about = Describe(chain.front().get(), expires);
  using Made = std::unique_ptr<const Credentials>;
  return Made(new Credentials(std::move(context), expires, std::move(about)));
}

}  // namespace tensord::tls
