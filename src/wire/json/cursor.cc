// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/json/cursor.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/ascii.h"
#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "wire/json/list_skimmer.h"
#include "wire/json/number.h"

namespace tensord::wire {
namespace {

// Four hex digits; -1 when they are not.
int32_t HexUnit(const char* at, const char* end) {
  if (end - at < 4) return -1;
  int32_t unit = 0;
  for (int i = 0; i < 4; ++i) {
    const int digit = base::HexDigit(at[i]);
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

void AppendUtf8(uint32_t code, std::string* out) {
  const auto add = [out](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0 | code >> 6);
    add(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    add(0xe0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3f));
    add(0x80 | (code & 0x3f));
  } else {
    add(0xf0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3f));
    add(0x80 | (code >> 6 & 0x3f));
    add(0x80 | (code & 0x3f));
  }
}

constexpr bool IsHighSurrogate(int32_t unit) { return unit >= 0xd800 && unit <= 0xdbff; }
constexpr bool IsLowSurrogate(int32_t unit) { return unit >= 0xdc00 && unit <= 0xdfff; }

// True for a number that may be above the largest double: judged by its length, which is cheap.
bool MayOverflow(std::string_view number) {
  constexpr size_t kHarmlessBytes = 300;
  if (number.size() > kHarmlessBytes) return true;
  const size_t exponent = number.find_first_of("eE");
  // 200 digits and e99 behind them stay below 1e308.
  return exponent != std::string_view::npos && (exponent > 200 || number.size() - exponent > 3);
}

}  // namespace

std::string_view JsonKindName(JsonKind kind) {
  constexpr std::array<std::string_view, 7> kNames = {"Null",   "False", "True",  "Number",
                                                      "String", "Array", "Object"};
  return kNames[static_cast<size_t>(kind)];
}

absl::Status JsonCursor::Error(std::string_view words) const {
  return absl::InvalidArgumentError(
      base::Cat("JSON Parse error: ", words, " at offset: ", at_ - begin_));
}

absl::Status JsonCursor::ReadWord(std::string_view word) {
  const std::string_view rest(at_, static_cast<size_t>(end_ - at_));
  if (rest.substr(0, word.size()) != word) return Error("Invalid value.");
  at_ += word.size();
  return absl::OkStatus();
}

bool JsonCursor::TakeDigits() {
  if (!base::IsDigit(Peek())) return false;
  while (at_ != end_ && base::IsDigit(*at_)) ++at_;
  return true;
}

absl::Status JsonCursor::ReadNumber() {
  const char* const start = at_;
  Take('-');
  if (Peek() == 'N') return ReadWord("NaN");
  if (Peek() == 'I') {
    RETURN_IF_ERROR(ReadWord("Inf"));
    return Peek() == 'i' ? ReadWord("inity") : absl::OkStatus();
  }
  if (!Take('0') && !TakeDigits()) return Error("Invalid value.");
  if (Take('.') && !TakeDigits()) return Error("Miss fraction part in number.");
  if (Take('e') || Take('E')) {
    if (!Take('+')) Take('-');
    if (!TakeDigits()) return Error("Miss exponent in number.");
  }
  const std::string_view number(start, static_cast<size_t>(at_ - start));
  double value = 0;
  if (MayOverflow(number) && ParseReal(start, at_, &value) != nullptr && std::isinf(value)) {
    at_ = start;
    return Error("Number too big to be stored in double.");
  }
  return absl::OkStatus();
}

// A number of at most 64 bytes without exponent, NaN or Infinity: nothing that needs a closer look.
bool JsonCursor::TakePlainNumber() {
  constexpr ptrdiff_t kBytesMax = 64;
  const char* at = at_;
  if (at != end_ && *at == '-') ++at;
  const char* const whole = at;
  while (at != end_ && base::IsDigit(*at)) ++at;
  if (at == whole || (*whole == '0' && at - whole > 1)) return false;
  if (at != end_ && *at == '.') {
    const char* const fraction = ++at;
    while (at != end_ && base::IsDigit(*at)) ++at;
    if (at == fraction) return false;
  }
  if (at - at_ > kBytesMax || (at != end_ && (*at == 'e' || *at == 'E'))) return false;
  at_ = at;
  return true;
}

// Most bytes of a large body are such numbers in a list: takes as many as there are.
// kAfterValue: the last one has no comma behind it. kValue: something else comes next.
JsonCursor::Step JsonCursor::TakePlainNumbers(JsonValue* value) {
  while (TakePlainNumber()) {
    SkipSpace();
    if (!Take(',')) return Step::kAfterValue;
    ++value->commas;
    if (open_.size() == 1) ++value->children;
    SkipSpace();
  }
  return Step::kValue;
}

// REQUIRES: at_ is behind a backslash.
absl::Status JsonCursor::ReadEscape() {
  constexpr std::string_view kEscapes = "\"\\/bfnrt";
  if (at_ == end_) return Error("Missing a closing quotation mark in string.");
  const char c = *at_++;
  if (kEscapes.find(c) != std::string_view::npos) return absl::OkStatus();
  if (c != 'u') return Error("Invalid escape character in string.");
  const int32_t unit = HexUnit(at_, end_);
  if (unit < 0) return Error("Incorrect hex digit after \\u escape in string.");
  at_ += 4;
  if (!IsHighSurrogate(unit)) return absl::OkStatus();
  if (!Take('\\') || !Take('u')) return Error("The surrogate pair in string is invalid.");
  const int32_t low = HexUnit(at_, end_);
  if (low < 0) return Error("Incorrect hex digit after \\u escape in string.");
  if (!IsLowSurrogate(low)) return Error("The surrogate pair in string is invalid.");
  at_ += 4;
  return absl::OkStatus();
}

// REQUIRES: at_ is at a quotation mark.
absl::Status JsonCursor::ReadString() {
  ++at_;
  while (at_ != end_) {
    const char c = *at_;
    if (c == '"') {
      ++at_;
      return absl::OkStatus();
    }
    if (static_cast<unsigned char>(c) < 0x20) {
      return Error(c == '\0' ? "Missing a closing quotation mark in string."
                             : "Invalid escape character in string.");
    }
    ++at_;
    if (c == '\\') RETURN_IF_ERROR(ReadEscape());
  }
  return Error("Missing a closing quotation mark in string.");
}

absl::Status JsonCursor::ReadScalar(JsonKind* kind) {
  switch (Peek()) {
    case '"':
      *kind = JsonKind::kString;
      return ReadString();
    case 'n':
      *kind = JsonKind::kNull;
      return ReadWord("null");
    case 't':
      *kind = JsonKind::kTrue;
      return ReadWord("true");
    case 'f':
      *kind = JsonKind::kFalse;
      return ReadWord("false");
    default:
      *kind = JsonKind::kNumber;
      return ReadNumber();
  }
}

bool JsonCursor::SkimLists(JsonValue* value) {
  if (Peek() != '[') return false;
  ListCounts counts;
  const char* const after = wire::SkimLists(at_, end_, &counts);
  if (after == nullptr) return false;
  value->kind = JsonKind::kArray;
  value->text = {at_, static_cast<size_t>(after - at_)};
  value->commas = counts.commas;
  value->children = counts.outer_commas + 1;
  value->depth = counts.depth_max;
  at_ = after;
  return true;
}

absl::StatusOr<std::string_view> JsonCursor::ReadName() {
  if (Peek() != '"') return Error("Missing a name for object member.");
  const char* const start = at_;
  RETURN_IF_ERROR(ReadString());
  const std::string_view name(start, static_cast<size_t>(at_ - start));
  SkipSpace();
  if (!Take(':')) return Error("Missing a colon after a name of object member.");
  SkipSpace();
  return name;
}

absl::StatusOr<bool> JsonCursor::ReadMemberEnd() {
  SkipSpace();
  if (Take('}')) return false;
  if (!Take(',')) return Error("Missing a comma or } after an object member.");
  SkipSpace();
  return true;
}

// Takes the bracket that opens a list or object, and an object's first name.
absl::StatusOr<JsonCursor::Step> JsonCursor::Open(JsonKind kind, JsonValue* value) {
  if (open_.size() == limits::kJsonNestingMax) {
    return Error(base::Cat("Nested deeper than ", limits::kJsonNestingMax, " levels."));
  }
  ++at_;
  const bool is_object = kind == JsonKind::kObject;
  open_.push_back(is_object);
  value->depth = std::max<uint64_t>(value->depth, open_.size());
  SkipSpace();
  if (Take(is_object ? '}' : ']')) {
    open_.pop_back();
    return Step::kAfterValue;
  }
  if (is_object) RETURN_IF_ERROR(ReadName().status());
  return Step::kValue;
}

// A value has ended: takes the comma (and the next name) or the closing bracket behind it.
absl::StatusOr<JsonCursor::Step> JsonCursor::Close(JsonValue* value) {
  if (open_.empty()) return Step::kDone;
  if (open_.size() == 1) ++value->children;
  const bool is_object = open_.back();
  SkipSpace();
  if (Take(',')) {
    ++value->commas;
    SkipSpace();
    if (is_object) RETURN_IF_ERROR(ReadName().status());
    return Step::kValue;
  }
  if (Take(is_object ? '}' : ']')) {
    open_.pop_back();
    return Step::kAfterValue;
  }
  return Error(is_object ? "Missing a comma or } after an object member."
                         : "Missing a comma or ] after an array element.");
}

// Skims the list at at_, which belongs to `value` or is it. Not inside another list, which could
// not be skimmed either: the same text would be looked at again and again.
bool JsonCursor::SkimInside(JsonValue* value) {
  if (lists_ == Lists::kChecked || (!open_.empty() && !open_.back())) return false;
  JsonValue list;
  if (!SkimLists(&list)) return false;
  ++skimmed_;
  value->commas += list.commas;
  value->depth = std::max<uint64_t>(value->depth, open_.size() + list.depth);
  if (open_.empty()) value->children = list.children;
  return true;
}

absl::StatusOr<JsonValue> JsonCursor::ReadValue() {
  const char* const start = at_;
  JsonValue value;
  open_.clear();
  Step step = Step::kValue;
  while (step != Step::kDone) {
    if (step == Step::kAfterValue) {
      ASSIGN_OR_RETURN(step, Close(&value));
      continue;
    }
    SkipSpace();
    if (!open_.empty() && !open_.back()) {
      step = TakePlainNumbers(&value);
      if (step == Step::kAfterValue) continue;
    }
    JsonKind kind = JsonKind::kNull;
    const bool outermost = open_.empty();
    if (Peek() == '[' || Peek() == '{') {
      kind = Peek() == '[' ? JsonKind::kArray : JsonKind::kObject;
      step = Step::kAfterValue;
      if (!SkimInside(&value)) {
        ASSIGN_OR_RETURN(step, Open(kind, &value));
      }
    } else {
      RETURN_IF_ERROR(ReadScalar(&kind));
      step = Step::kAfterValue;
    }
    if (outermost) value.kind = kind;
  }
  value.text = {start, static_cast<size_t>(at_ - start)};
  return value;
}

std::string UnescapeJson(std::string_view quoted) {
  const char* at = quoted.data() + 1;
  const char* const end = quoted.data() + quoted.size() - 1;
  std::string out;
  out.reserve(quoted.size());
  while (at != end) {
    if (*at != '\\') {
      out.push_back(*at++);
      continue;
    }
    const char c = at[1];
    at += 2;
    if (c != 'u') {
      constexpr std::string_view kCodes = "bfnrt";
      constexpr std::string_view kCharacters = "\b\f\n\r\t";
      const size_t code = kCodes.find(c);
      out.push_back(code == std::string_view::npos ? c : kCharacters[code]);
      continue;
    }
    auto unit = static_cast<uint32_t>(HexUnit(at, end));
    at += 4;
    if (IsHighSurrogate(static_cast<int32_t>(unit))) {
      const auto low = static_cast<uint32_t>(HexUnit(at + 2, end));
      unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
      at += 6;
    }
    AppendUtf8(unit, &out);
  }
  return out;
}

bool IsJsonName(std::string_view quoted, std::string_view name) {
  const std::string_view inside = quoted.substr(1, quoted.size() - 2);
  if (inside.find('\\') == std::string_view::npos) return inside == name;
  return UnescapeJson(quoted) == name;
}

std::string_view Base64Member(std::string_view object) {
  JsonCursor cursor(object);
  if (!cursor.Take('{')) return {};
  cursor.SkipSpace();
  const auto name = cursor.ReadName();
  if (!name.ok() || !IsJsonName(*name, "b64") || cursor.Peek() != '"') return {};
  const auto value = cursor.ReadValue();
  cursor.SkipSpace();
  return value.ok() && cursor.Peek() == '}' ? value->text : std::string_view();
}

absl::Status JsonFormatError(std::string_view text, std::string_view words) {
  return absl::InvalidArgumentError(base::Cat("JSON Value: ", JsonExcerpt(text), " ", words));
}

std::string JsonExcerpt(std::string_view text) {
  constexpr size_t kBytesMax = 256;
  return text.size() <= kBytesMax ? std::string(text) : base::Cat(text.substr(0, kBytesMax), "...");
}

}  // namespace tensord::wire
