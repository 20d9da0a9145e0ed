// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>

namespace tensord::serve {

struct DescriptorLimit {
  uint64_t before = 0;
  uint64_t now = 0;
};

// Raises this process's limit of open files to what the system allows it (soft to hard): many
// distributions start programs with 1,024, which a server of connections outgrows.
DescriptorLimit RaiseDescriptorLimit();

// How many connections each of `listeners` may hold so that files, models and workers always find a
// descriptor; at most kConnectionsMax. Pure.
int ConnectionsMax(uint64_t descriptors, size_t listeners);

}  // namespace tensord::serve
