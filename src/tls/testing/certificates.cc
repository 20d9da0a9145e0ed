// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "tls/testing/certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <cstdint>
#include <memory>

#include "base/check.h"

namespace tensord::tls {
namespace {

constexpr long kHour = 3600;  // NOLINT(google-runtime-int): OpenSSL's type.
constexpr long kDay = 24 * kHour;

template <typename Write>
std::string Pem(Write write) {
  BIO* const bio = BIO_new(BIO_s_mem());
  TENSORD_CHECK(write(bio) == 1);
  char* text = nullptr;
  const auto size = static_cast<size_t>(BIO_get_mem_data(bio, &text));
  std::string pem(text, size);
  BIO_free(bio);
  return pem;
}

void AddExtension(X509* certificate, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value);
  TENSORD_CHECK(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

}  // namespace

Identity MakeIdentity(const std::string& name, const Identity* authority, int days) {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const certificate = X509_new();
  X509_set_version(certificate, 2);
  uint32_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial));
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), static_cast<int32_t>(serial >> 1));
  X509_gmtime_adj(X509_getm_notBefore(certificate), days < 0 ? 2 * days * kDay : -kHour);
  X509_gmtime_adj(X509_getm_notAfter(certificate), days * kDay);
  X509_set_pubkey(certificate, key);
  X509_NAME* const subject = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  AddExtension(certificate, NID_basic_constraints,
               authority == nullptr ? "critical,CA:TRUE" : "critical,CA:FALSE");
  AddExtension(certificate, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
  if (authority == nullptr) {
    X509_set_issuer_name(certificate, subject);
    X509_sign(certificate, key, EVP_sha256());
  } else {
    BIO* const ca_text = BIO_new_mem_buf(authority->certificate.data(), -1);
    X509* const ca = PEM_read_bio_X509(ca_text, nullptr, nullptr, nullptr);
    BIO* const key_text = BIO_new_mem_buf(authority->key.data(), -1);
    EVP_PKEY* const ca_key = PEM_read_bio_PrivateKey(key_text, nullptr, nullptr, nullptr);
    X509_set_issuer_name(certificate, X509_get_subject_name(ca));
    X509_sign(certificate, ca_key, EVP_sha256());
    EVP_PKEY_free(ca_key);
    BIO_free(key_text);
    X509_free(ca);
    BIO_free(ca_text);
  }
  Identity identity{
      .key = Pem([&](BIO* bio) {
        return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
      }),
      .certificate = Pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); })};
  X509_free(certificate);
  EVP_PKEY_free(key);
  return identity;
}

}  // namespace tensord::tls
