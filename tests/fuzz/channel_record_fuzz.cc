// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// Records as a hostile front or worker could send them. What decodes must encode to the same bytes:
// there is one way to say a thing.

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "channel/record.h"

namespace tensord::channel {
namespace {

constexpr uint64_t kIncarnation = 1;  // As in the corpus.

void DecodeBothWays(std::string_view bytes) {
  if (const auto record = DecodeToWorker(bytes, kIncarnation); record.ok()) {
    TENSORD_CHECK(Encode(kIncarnation, *record) == bytes);
  }
  if (const auto record = DecodeToFront(bytes, kIncarnation); record.ok()) {
    TENSORD_CHECK(Encode(kIncarnation, *record) == bytes);
  }
}

}  // namespace
}  // namespace tensord::channel

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tensord::channel::DecodeBothWays({reinterpret_cast<const char*>(data), size});
  return 0;
}
