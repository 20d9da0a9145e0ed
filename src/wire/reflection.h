// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tensord::wire {

// Answers one question of grpc.reflection.v1 (and of v1alpha, whose messages are the same on the
// wire) about the services of this server: a serialized ServerReflectionRequest in, a
// ServerReflectionResponse out. A file comes with everything it imports. INVALID_ARGUMENT when the
// bytes are no such request; that something does not exist is an answer like any other.
absl::StatusOr<std::string> AnswerReflection(std::string_view request);

}  // namespace tensord::wire
