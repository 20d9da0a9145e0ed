// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <google/protobuf/struct.pb.h>

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tensord::doctor {

// INVALID_ARGUMENT with the parser's words. Reads untrusted text.
absl::StatusOr<google::protobuf::Value> ParseJson(std::string_view text);

// Members of a parsed object; null when `value` is no object or has no such member.
const google::protobuf::Value* Member(const google::protobuf::Value& value,
                                      const std::string& name);
double NumberIn(const google::protobuf::Value& value, const std::string& name, double otherwise);
std::string TextIn(const google::protobuf::Value& value, const std::string& name);

}  // namespace tensord::doctor
