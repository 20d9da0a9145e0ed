// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tensor/tensor.h"
#include "wire/inference.h"

namespace tensord::wire {

// The body of a REST predict answer, byte for byte as the original lays it out:
// {"predictions": [...]} by row, or {"outputs": ...} by column.
// INVALID_ARGUMENT when there is no output, or rows cannot be told apart; INTERNAL when a tensor's
// bytes are not its packed form (they come from a worker).
absl::StatusOr<std::string> PrintPredictions(bool row_format,
                                             std::span<const tensor::NamedTensor> outputs);

// The body of a REST classify or regress answer: {"results": [...]}.
std::string PrintInference(const InferenceResult& result);

// { "error": "..." }, in UTF-8 whatever the message quotes.
std::string PrintError(std::string_view message);

// Appends a string with quotes and the escapes that rapidjson writes; bytes above 0x7f as they are.
void AppendJsonString(std::string_view text, std::string* out);

}  // namespace tensord::wire
