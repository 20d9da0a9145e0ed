// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/json/examples.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/protobuf_wire.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "wire/examples.h"
#include "wire/json/base64.h"
#include "wire/json/cursor.h"
#include "wire/json/number.h"

namespace tensord::wire {
namespace {

// The fields of tensorflow.Feature's choice.
enum class Kind : uint8_t { kNone = 0, kBytes = 1, kFloats = 2, kInt64s = 3 };

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kBytes:
      return "bytes";
    case Kind::kFloats:
      return "float";
    case Kind::kInt64s:
      return "int64";
    default:
      return "UNKNOWN";
  }
}

// One tensorflow.Feature on its way from JSON values to bytes.
class Feature {
 public:
  // `name` is for errors.
  explicit Feature(std::string_view name) : name_(name) {}

  absl::Status Add(const JsonValue& value);
  // Serialized. An empty list has no kind.
  std::string Take() &&;

 private:
  absl::Status Unexpected(JsonKind kind) const;
  absl::Status Become(Kind kind);
  absl::Status AddNumber(std::string_view text);
  absl::Status AddInt64(uint64_t bits);
  absl::Status AddString(std::string_view value);
  absl::Status AddBase64(std::string_view quoted);

  std::string_view name_;
  Kind kind_ = Kind::kNone;
  std::string values_;  // Packed numbers; or bytes fields, tags included.
};

absl::Status Feature::Unexpected(JsonKind kind) const {
  return absl::InvalidArgumentError(base::Cat(
      "Feature: ", name_, " has element with unexpected JSON type: ", JsonKindName(kind)));
}

absl::Status Feature::Become(Kind kind) {
  if (kind_ != Kind::kNone && kind_ != kind) {
    return absl::InvalidArgumentError(base::Cat("Unexpected element type in feature: ", name_,
                                                " expecting type: ", KindName(kind_)));
  }
  kind_ = kind;
  return absl::OkStatus();
}

absl::Status Feature::AddInt64(uint64_t bits) {
  RETURN_IF_ERROR(Become(Kind::kInt64s));
  base::AppendVarint(bits, &values_);
  return absl::OkStatus();
}

// An integer literal is an int64; one below all of those is a float, as rapidjson has it.
absl::Status Feature::AddNumber(std::string_view text) {
  constexpr auto kLargest = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  const char* const end = text.data() + text.size();
  JsonInteger integer;
  const bool is_integer = ParseInteger(text.data(), end, &integer) == end;
  if (is_integer && !integer.negative && integer.magnitude > kLargest) {
    RETURN_IF_ERROR(Become(Kind::kInt64s));
    return absl::InvalidArgumentError(base::Cat("Feature: ", name_, " has uint64 element: ", text,
                                                ". Only int64_t is supported."));
  }
  if (is_integer && integer.magnitude <= kLargest + 1) {
    return AddInt64(integer.negative ? 0 - integer.magnitude : integer.magnitude);
  }
  float value = 0;
  if (ParseReal(text.data(), end, &value) != end) return Unexpected(JsonKind::kNumber);
  RETURN_IF_ERROR(Become(Kind::kFloats));
  values_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  return absl::OkStatus();
}

absl::Status Feature::AddString(std::string_view value) {
  RETURN_IF_ERROR(Become(Kind::kBytes));
  base::AppendBytesField(1, value, &values_);
  return absl::OkStatus();
}

absl::Status Feature::AddBase64(std::string_view quoted) {
  std::string bytes;
  RETURN_IF_ERROR(Become(Kind::kBytes));
  if (!AppendBase64Decoded(UnescapeJson(quoted), &bytes)) {
    return absl::InvalidArgumentError(
        base::Cat("Unable to base64 decode (in feature: ", name_, ")"));
  }
  return AddString(bytes);
}

absl::Status Feature::Add(const JsonValue& value) {
  switch (value.kind) {
    case JsonKind::kTrue:
    case JsonKind::kFalse:
      return AddInt64(value.kind == JsonKind::kTrue ? 1 : 0);
    case JsonKind::kNumber:
      return AddNumber(value.text);
    case JsonKind::kString:
      return AddString(UnescapeJson(value.text));
    case JsonKind::kObject: {
      const std::string_view quoted = Base64Member(value.text);
      return quoted.empty() ? Unexpected(value.kind) : AddBase64(quoted);
    }
    default:
      return Unexpected(value.kind);
  }
}

std::string Feature::Take() && {
  std::string out;
  if (kind_ == Kind::kNone) return out;
  std::string list;
  if (kind_ == Kind::kBytes) {
    list = std::move(values_);
  } else {
    base::AppendBytesField(1, values_, &list);
  }
  base::AppendBytesField(static_cast<uint32_t>(kind_), list, &out);
  return out;
}

// Calls visit(value) for each element of an array that a cursor has checked.
template <typename Visit>
absl::Status ForEachElement(std::string_view array, Visit visit) {
  JsonCursor cursor(array);
  cursor.Take('[');
  cursor.SkipSpace();
  while (!cursor.Take(']')) {
    ASSIGN_OR_RETURN(const JsonValue value, cursor.ReadValue());
    RETURN_IF_ERROR(visit(value));
    cursor.SkipSpace();
    if (cursor.Take(',')) cursor.SkipSpace();
  }
  return absl::OkStatus();
}

// Features: feature = 1, a map. Of features with one name the last counts, as in any map.
absl::Status AddFeature(std::string_view quoted_name, JsonCursor* cursor, std::string* features) {
  const std::string name = UnescapeJson(quoted_name);
  ASSIGN_OR_RETURN(const JsonValue value, cursor->ReadValue());
  Feature feature(name);
  if (value.kind == JsonKind::kArray) {
    RETURN_IF_ERROR(ForEachElement(
        value.text, [&feature](const JsonValue& element) { return feature.Add(element); }));
  } else {
    RETURN_IF_ERROR(feature.Add(value));
  }
  std::string entry;
  base::AppendBytesField(1, name, &entry);
  base::AppendBytesField(2, std::move(feature).Take(), &entry);
  base::AppendBytesField(1, entry, features);
  return absl::OkStatus();
}

// Example: features = 1.
absl::StatusOr<std::string> MakeExample(const JsonValue& value) {
  if (value.kind != JsonKind::kObject) {
    return absl::InvalidArgumentError(
        base::Cat("Example must be JSON object but got JSON ", JsonKindName(value.kind)));
  }
  std::string features;
  JsonCursor cursor(value.text);
  RETURN_IF_ERROR(ForEachJsonMember(
      &cursor, [&](std::string_view name) { return AddFeature(name, &cursor, &features); }));
  std::string example;
  base::AppendBytesField(1, features, &example);
  return example;
}

absl::Status CheckExamplesKey(const JsonRequest& request) {
  if (!request.examples.has_value()) {
    return JsonFormatError(request.text,
                           "When method is classify, key 'examples' is expected and was not found");
  }
  if (request.examples->kind != JsonKind::kArray) {
    return JsonFormatError(request.text, "Expecting 'examples' value to be an list/array");
  }
  if (request.examples->children == 0) {
    return JsonFormatError(request.text, "'examples' value is an empty array");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<tensor::Tensor> JsonExamples(const JsonRequest& request) {
  std::string context;
  if (request.context.has_value()) {
    ASSIGN_OR_RETURN(context, MakeExample(*request.context));
  }
  RETURN_IF_ERROR(CheckExamplesKey(request));
  std::vector<std::string> examples;
  uint64_t example_bytes = 0;
  RETURN_IF_ERROR(
      ForEachElement(request.examples->text, [&](const JsonValue& value) -> absl::Status {
        absl::StatusOr<std::string> example = MakeExample(value);
        if (!example.ok()) {
          return absl::InvalidArgumentError(
              base::Cat(base::Message(example.status()), " (at examples[", examples.size(), "])"));
        }
        example_bytes += example->size();
        examples.push_back(*std::move(example));
        return absl::OkStatus();
      }));
  ASSIGN_OR_RETURN(ExampleWriter writer,
                   ExampleWriter::Make(examples.size(), example_bytes, context));
  for (const std::string& example : examples) writer.Add(example);
  return std::move(writer).Take();
}

}  // namespace tensord::wire
