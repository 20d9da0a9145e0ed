// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

namespace tensord::front {

// How a gRPC message may be compressed.
enum class GrpcEncoding : uint8_t { kIdentity, kGzip, kDeflate };

}  // namespace tensord::front
