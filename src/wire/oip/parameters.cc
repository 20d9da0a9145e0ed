// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/oip/parameters.h"

#include "base/text.h"

namespace tensord::wire {
namespace {

absl::Status TakeNumber(std::string_view name, const OipParameter& value, uint64_t* number) {
  if (const uint64_t* const given = std::get_if<uint64_t>(&value)) {
    *number = *given;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      base::Cat("the parameter ", name, " must be a whole number, 0 or more"));
}

// What clients send that have sequences in mind but no sequence to name.
bool NamesNoSequence(const OipParameter& value) {
  const uint64_t* const number = std::get_if<uint64_t>(&value);
  const std::string* const text = std::get_if<std::string>(&value);
  const bool* const flag = std::get_if<bool>(&value);
  return (number != nullptr && *number == 0) || (text != nullptr && text->empty()) ||
         (flag != nullptr && !*flag);
}

}  // namespace

bool IsOipParameter(std::string_view name) {
  return name == "timeout" || name == "priority" || name.starts_with("sequence_");
}

absl::Status TakeOipParameter(std::string_view name, const OipParameter& value,
                              OipUrgency* urgency) {
  if (name == "timeout") return TakeNumber(name, value, &urgency->timeout_micros);
  if (name == "priority") return TakeNumber(name, value, &urgency->priority);
  if (NamesNoSequence(value)) return absl::OkStatus();
  return absl::UnimplementedError(
      base::Cat("sequences (the parameter ", name,
                ") are not served: each request stands for itself, and may be answered by any "
                "worker of its version"));
}

absl::Status CheckOipTensorParameter(std::string_view name) {
  if (name.starts_with("shared_memory_")) {
    return absl::UnimplementedError(base::Cat("shared memory (the parameter ", name,
                                              ") is not served; send and take the values in "
                                              "request and answer"));
  }
  if (name == "classification") {
    return absl::UnimplementedError(
        "the parameter classification is not served; take the output as it is");
  }
  return absl::OkStatus();
}

}  // namespace tensord::wire
