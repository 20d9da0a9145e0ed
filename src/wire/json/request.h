// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tensor/request.h"
#include "tensor/signature.h"
#include "wire/json/cursor.h"

// REST bodies, in two steps, because the numbers' types are known only once the signature
// is: scan, look up the model and the signature, then read the tensors.
namespace tensord::wire {

// A body whose members were found, and whose syntax was checked but for `unchecked_lists`. Of
// members with one name the first counts, as in the original. Lifetime: the views are into the
// body.
struct JsonRequest {
  std::string signature_name;  // Empty when not given.
  bool row_format = false;     // "instances" was given: the answer has "predictions".
  std::string_view text;       // The whole object.
  std::optional<JsonValue> instances;
  std::optional<JsonValue> inputs;
  std::optional<JsonValue> context;  // These two of classify and regress: see examples.h.
  std::optional<JsonValue> examples;
  // Of so many lists, which may be large, only the brackets were looked at. JsonTensors reads them
  // strictly; who answers with another error first asks CheckSyntax.
  uint64_t unchecked_lists = 0;
  std::string_view body;
};

// INVALID_ARGUMENT for bad syntax, a body that is not an object, or a signature_name that is no
// string. Bytes behind the object are ignored, and so is a byte order mark before it.
absl::StatusOr<JsonRequest> ScanJsonRequest(std::string_view body);

// The error that bad syntax anywhere in the body gives, which comes before all others.
absl::Status CheckSyntax(const JsonRequest& request);

// Reads the tensors into their final bytes. The request's spec holds the signature's name only.
// INVALID_ARGUMENT (UNIMPLEMENTED for dtypes that JSON has no form for), in the original's words
// with the place of the value behind them.
// Lifetime: names are the signature's; it outlives the request.
absl::StatusOr<tensor::PredictRequest> JsonTensors(const JsonRequest& request,
                                                   const tensor::Signature& signature);

}  // namespace tensord::wire
