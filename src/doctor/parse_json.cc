// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "doctor/parse_json.h"

#include <google/protobuf/util/json_util.h>

#include "base/text.h"
#include "doctor/words.h"

namespace tensord::doctor {

using google::protobuf::Value;

absl::StatusOr<Value> ParseJson(std::string_view text) {
  Value value;
  const auto status =
      google::protobuf::util::JsonStringToMessage({text.data(), text.size()}, &value);
  if (status.ok()) return value;
  return absl::InvalidArgumentError(
      base::Cat("no JSON: ", Ascii({status.message().data(), status.message().size()})));
}

const Value* Member(const Value& value, const std::string& name) {
  if (!value.has_struct_value()) return nullptr;
  const auto& fields = value.struct_value().fields();
  const auto found = fields.find(name);
  return found == fields.end() ? nullptr : &found->second;
}

double NumberIn(const Value& value, const std::string& name, double otherwise) {
  const Value* member = Member(value, name);
  return member != nullptr && member->kind_case() == Value::kNumberValue ? member->number_value()
                                                                         : otherwise;
}

std::string TextIn(const Value& value, const std::string& name) {
  const Value* member = Member(value, name);
  return member != nullptr && member->kind_case() == Value::kStringValue ? member->string_value()
                                                                         : "";
}

}  // namespace tensord::doctor
