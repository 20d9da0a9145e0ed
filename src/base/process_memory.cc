// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "base/process_memory.h"

#include <malloc.h>

#include "base/limits.h"

namespace tensord::base {

void KeepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, limits::kRecycledBlockBytes);
  mallopt(M_TRIM_THRESHOLD, limits::kFreedBytesKept);
}

}  // namespace tensord::base
