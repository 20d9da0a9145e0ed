// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tensord::engine {

// One line for each input or output, of a serialized SignatureDefMap, that no client's message can
// carry: a sparse, ragged or other composite tensor, a resource, a quantized one. It says what to
// do instead. The model's other signatures are served all the same.
std::vector<std::string> DescribeUnservable(std::string_view signature_def_map);

}  // namespace tensord::engine
