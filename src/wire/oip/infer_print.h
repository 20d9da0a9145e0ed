// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "wire/oip/infer_encode.h"

namespace tensord::wire {

// What a JSON answer says of NaN and the infinities, which JSON has no form for.
enum class NonFinite : uint8_t {
  kError,  // The call fails, naming the output.
  kNull,   // null stands in their place.
};

struct OipBody {
  std::string text;
  // The JSON text's length, when binary tensors follow it.
  std::optional<size_t> json_bytes;
};

// The body of an inference answer over REST: strict JSON, and behind it the outputs whose entry in
// `binary` is true. INVALID_ARGUMENT for values that JSON cannot hold; INTERNAL and UNIMPLEMENTED
// as EncodeOipResponse. REQUIRES: an entry of `binary` for each output.
absl::StatusOr<OipBody> PrintOipResponse(const OipAnswered& answered,
                                         std::span<const tensor::NamedTensor> outputs,
                                         const std::vector<bool>& binary, NonFinite non_finite);

}  // namespace tensord::wire
