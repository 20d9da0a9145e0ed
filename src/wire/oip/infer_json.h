// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "wire/oip/request.h"

namespace tensord::wire {

// How many bytes of a body of `body_bytes` are its JSON text, by the header
// Inference-Header-Content-Length; all of them without it. INVALID_ARGUMENT when it is no number,
// or more than there is.
absl::StatusOr<size_t> OipJsonBytes(std::optional<std::string_view> header, size_t body_bytes);

// An inference request over REST: `json_bytes` of JSON text, behind them the tensors whose
// parameters have a binary_data_size, in the order of the inputs. The text must be strict JSON:
// nothing behind it, no NaN or Infinity, no member twice where it counts. The spec holds the
// signature's name only.
// INVALID_ARGUMENT says where and what was expected; UNIMPLEMENTED for extensions that are not
// served. Binary tensors stay where they are in the body. Lifetime: the body outlives the request.
// REQUIRES: json_bytes <= body.size().
absl::StatusOr<OipRequest> ParseOipInfer(std::string_view body, size_t json_bytes);

}  // namespace tensord::wire
