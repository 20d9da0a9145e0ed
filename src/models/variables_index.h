// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tensord::models {

// How many bytes each data file of a checkpoint must have at least, from the bytes of its
// variables.index: element i is for variables.data-0000i-of-0000n.
//
// The index is a table in LevelDB's format (blocks of key-value pairs, an index of the blocks, a
// footer with a magic number at the very end). The value of the empty key is a BundleHeaderProto,
// each other one a BundleEntryProto with shard, offset and size of a variable. The footer is
// written last, so a file that was cut short has none.
//   DATA_LOSS: cut short or damaged;  UNIMPLEMENTED: a compressed block, which TensorFlow does not
//   write.
// Reads untrusted bytes: every number in them is checked.
absl::StatusOr<std::vector<uint64_t>> ShardBytes(std::string_view index);

}  // namespace tensord::models
