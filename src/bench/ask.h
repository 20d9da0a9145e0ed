// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/client.h"
#include "tensor/signature.h"

// Single questions to a server, before a load.
namespace tensord::bench {

struct Reply {
  bool ok = false;
  int code = 0;       // gRPC or HTTP status.
  std::string words;  // If not ok.
  std::string body;   // REST: of the answer; gRPC: its message.
};

// UNAVAILABLE, with what to do, when there is no server, it speaks something else, or it does not
// answer within ten seconds.
absl::StatusOr<Reply> Ask(const Address& address, bool rest, const Request& request);

// One of a server's signatures by name. NOT_FOUND lists those that there are, or the models where
// the server tells them.
absl::StatusOr<tensor::Signature> AskForSignature(const Address& address, bool rest,
                                                  std::string_view model,
                                                  std::string_view signature);

// The one that a server of the Open Inference Protocol describes.
absl::StatusOr<tensor::Signature> AskForOipSignature(const Address& address, bool rest,
                                                     std::string_view model);

// "; the server has a, b and c", from GET /v1/models at the address, or at the REST port that goes
// with it by custom (8501 with 8500). Empty where nobody says.
std::string ModelsThere(const Address& address, bool rest);

// The signatures in the answer of GET /v1/models/NAME/metadata. Pure.
absl::StatusOr<tensor::SignatureList> SignaturesOfJson(std::string_view json);
// That in a ModelMetadataResponse's JSON form. Pure.
absl::StatusOr<tensor::Signature> OipSignatureOfJson(std::string_view json);
// The names in the answer of GET /v1/models; none when it is no such answer. Pure.
std::vector<std::string> ModelsOfJson(std::string_view json);

}  // namespace tensord::bench
