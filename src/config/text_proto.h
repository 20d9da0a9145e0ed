// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "config/file_texts.h"

namespace tensord::config {

// The whole file, at most kConfigFileBytesMax. NOT_FOUND, or INVALID_ARGUMENT; `option` is named.
// Where `texts` has the option, that is the file's text.
absl::StatusOr<std::string> ReadFile(std::string_view option, const std::string& path,
                                     FileTexts* texts = nullptr);

// INVALID_ARGUMENT "Error parsing text-format <message>: <path>:<line>:<column>: <what>", all
// errors of the file in one text, each from its place on.
absl::Status ParseTextProto(std::string_view text, std::string_view path,
                            google::protobuf::Message* message);

// Both in a row.
absl::Status ReadTextProto(std::string_view option, const std::string& path, FileTexts* texts,
                           google::protobuf::Message* message);

}  // namespace tensord::config
