// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status_macros.h"

namespace tensord::wire {

enum class JsonKind : uint8_t { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };

// "Null", "Number", ... as the original names them in errors.
std::string_view JsonKindName(JsonKind kind);

// One value as it stands in the text.
struct JsonValue {
  JsonKind kind = JsonKind::kNull;
  std::string_view text;  // From its first to its last byte, quotes and brackets included.
  uint64_t commas = 0;    // Anywhere inside; a list of lists has at most commas + 1 leaves.
  uint64_t children = 0;  // Elements of an array, members of an object.
  uint64_t depth = 0;     // Nested arrays and objects, itself included; 0 for a scalar.
};

// Reads JSON text from left to right by the rules of rapidjson 1.1 with NaN and Infinity allowed:
// no comments, no trailing commas, no check of UTF-8. Nothing here recurses.
// Lifetime: the text outlives the cursor and every view it gave.
class JsonCursor {
 public:
  // How ReadValue looks at lists that hold neither strings nor objects: kBrackets is for text that
  // is read strictly later.
  enum class Lists : uint8_t { kChecked, kBrackets };

  explicit JsonCursor(std::string_view text)
      : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()) {}

  void set_lists(Lists lists) { lists_ = lists; }

  void SkipSpace() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }
  // The next byte, 0 at the end.
  char Peek() const { return at_ == end_ ? '\0' : *at_; }
  // Takes the next byte if it is this one.
  bool Take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  const char* at() const { return at_; }
  const char* end() const { return end_; }
  // REQUIRES: at() <= to <= end().
  void MoveTo(const char* to) { at_ = to; }

  // Checks and takes one value of any kind. INVALID_ARGUMENT "JSON Parse error: ..." in
  // rapidjson's words, with the offset.
  absl::StatusOr<JsonValue> ReadValue();
  // Lists that ReadValue took by their brackets alone.
  uint64_t skimmed() const { return skimmed_; }
  // Takes a nest of lists by its brackets alone, at the speed of memory: for text that is read
  // strictly later. False, with nothing taken, for anything but a nest of lists that has neither
  // strings nor objects in it and ends within the text.
  bool SkimLists(JsonValue* value);
  // Checks and takes a member's name, its colon and the white space up to its value. The name comes
  // back with its quotes.
  absl::StatusOr<std::string_view> ReadName();
  // Takes what is behind a member's value: true for a comma (and stands at the next name), false
  // for the closing bracket.
  absl::StatusOr<bool> ReadMemberEnd();

 private:
  enum class Step : uint8_t { kValue, kAfterValue, kDone };

  absl::Status Error(std::string_view words) const;
  bool TakePlainNumber();
  Step TakePlainNumbers(JsonValue* value);
  bool SkimInside(JsonValue* value);
  absl::Status ReadScalar(JsonKind* kind);
  absl::Status ReadString();
  absl::Status ReadEscape();
  absl::Status ReadNumber();
  absl::Status ReadWord(std::string_view word);
  bool TakeDigits();
  absl::StatusOr<Step> Open(JsonKind kind, JsonValue* value);
  absl::StatusOr<Step> Close(JsonValue* value);

  const char* begin_;
  const char* at_;
  const char* end_;
  Lists lists_ = Lists::kChecked;
  uint64_t skimmed_ = 0;
  std::vector<bool> open_;  // The arrays (false) and objects (true) around at_, while in ReadValue.
};

// The characters of a string that a cursor has checked, without its quotes and escapes. Surrogate
// pairs become UTF-8.
std::string UnescapeJson(std::string_view quoted);

// True when that string reads `name`; cheap when it has no escapes.
bool IsJsonName(std::string_view quoted, std::string_view name);

// The string of an object that is exactly {"b64": "..."}, with its quotes; empty otherwise.
// REQUIRES: `object` was checked by a cursor.
std::string_view Base64Member(std::string_view object);

// Walks the members of an object whose names and commas were checked, and stands behind it then:
// visit(name) takes the value.
template <typename Visit>
absl::Status ForEachJsonMember(JsonCursor* cursor, Visit visit) {
  cursor->Take('{');
  cursor->SkipSpace();
  while (!cursor->Take('}')) {
    ASSIGN_OR_RETURN(const std::string_view name, cursor->ReadName());
    RETURN_IF_ERROR(visit(name));
    cursor->SkipSpace();
    if (cursor->Take(',')) cursor->SkipSpace();
  }
  return absl::OkStatus();
}

// At most 256 bytes of a value's text, for errors.
std::string JsonExcerpt(std::string_view text);

// INVALID_ARGUMENT "JSON Value: <excerpt> <words>".
absl::Status JsonFormatError(std::string_view text, std::string_view words);

}  // namespace tensord::wire
