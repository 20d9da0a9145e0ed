// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "tls/peer.h"

#include <openssl/x509v3.h>

#include <memory>
#include <string_view>

namespace tensord::tls {
namespace {

struct FreeCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
struct FreeNames {
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};

// A name with a NUL in it is one that somebody hopes is read in two ways.
void Add(const ASN1_STRING* text, std::vector<std::string>* names) {
  if (text == nullptr) return;
  const auto* const data = reinterpret_cast<const char*>(ASN1_STRING_get0_data(text));
  const std::string_view name(data, static_cast<size_t>(ASN1_STRING_length(text)));
  if (!name.empty() && name.find('\0') == std::string_view::npos) names->emplace_back(name);
}

}  // namespace

std::vector<std::string> PeerNames(SSL* session) {
  std::vector<std::string> found;
  if ((SSL_get_verify_mode(session) & SSL_VERIFY_PEER) == 0) return found;
  const std::unique_ptr<X509, FreeCertificate> certificate(SSL_get1_peer_certificate(session));
  if (certificate == nullptr || SSL_get_verify_result(session) != X509_V_OK) return found;
  const std::unique_ptr<GENERAL_NAMES, FreeNames> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS || name->type == GEN_EMAIL || name->type == GEN_URI) {
      Add(name->d.ia5, &found);
    }
  }
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at >= 0) Add(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)), &found);
  return found;
}

}  // namespace tensord::tls
