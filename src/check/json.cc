// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "check/json.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include "base/check.h"

namespace tensord::check {
namespace {

using google::protobuf::ListValue;
using google::protobuf::Struct;

// Paths and names are bytes; JSON has only characters.
std::string Characters(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += byte < 0x80 ? c : '?';
  }
  return text;
}

void Set(Struct* object, const char* name, const std::string& text) {
  (*object->mutable_fields())[name].set_string_value(Characters(text));
}
void Set(Struct* object, const char* name, bool value) {
  (*object->mutable_fields())[name].set_bool_value(value);
}
// Digits as text, because JSON's readers round above 2^53.
void Set(Struct* object, const char* name, int64_t value) {
  Set(object, name, std::to_string(value));
}
void Set(Struct* object, const char* name, const std::vector<std::string>& lines) {
  ListValue* list = (*object->mutable_fields())[name].mutable_list_value();
  for (const std::string& line : lines) list->add_values()->set_string_value(Characters(line));
}

template <typename Item, typename Fill>
void SetList(Struct* object, const char* name, const std::vector<Item>& items, Fill fill) {
  ListValue* list = (*object->mutable_fields())[name].mutable_list_value();
  for (const Item& item : items) fill(item, list->add_values()->mutable_struct_value());
}

void FillVersion(const VersionReport& version, Struct* object) {
  Set(object, "number", version.number);
  Set(object, "directory", version.directory);
  Set(object, "bytes", static_cast<int64_t>(version.bytes));
  Set(object, "complete", version.looked_at && version.waits_for.empty());
  Set(object, "loads", version.loads);
  Set(object, "waits_for", version.waits_for);
}

void FillModel(const ModelReport& model, Struct* object) {
  Set(object, "name", model.name);
  Set(object, "base_path", model.base_path);
  Set(object, "platform", model.platform);
  Set(object, "policy", model.policy);
  SetList(object, "versions", model.versions, FillVersion);
}

void FillPlatform(const PlatformReport& platform, Struct* object) {
  Set(object, "name", platform.name);
  Set(object, "lines", platform.lines);
}

void FillFlag(const FlagReport& flag, Struct* object) {
  Set(object, "name", flag.name);
  Set(object, "value", flag.value);
  Set(object, "state", flag.state);
  Set(object, "note", flag.note);
}

void FillDifference(const Difference& row, Struct* object) {
  Set(object, "area", row.area);
  Set(object, "what", row.what);
  Set(object, "original", row.original);
  Set(object, "ours", row.ours);
  Set(object, "why", row.why);
}

}  // namespace

std::string ToJson(const Report& report) {
  Struct object;
  Set(&object, "ok", report.ok());
  Set(&object, "errors", report.errors);
  Set(&object, "warnings", report.warnings);
  Set(&object, "listeners", report.listeners);
  Set(&object, "process", report.process);
  SetList(&object, "platforms", report.platforms, FillPlatform);
  SetList(&object, "models", report.models, FillModel);
  SetList(&object, "flags", report.flags, FillFlag);
  SetList(&object, "differences", report.differences, FillDifference);
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(object, &text, options);
  TENSORD_CHECK(status.ok());  // Numbers are finite and texts are ASCII.
  return text;
}

}  // namespace tensord::check
