// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// "METHOD TARGET". A route that is not refused has a model; a refused one an error that prints.

#include <string_view>

#include "base/check.h"
#include "base/text.h"
#include "base/utf8.h"
#include "wire/json/cursor.h"
#include "wire/json/print.h"
#include "wire/rest_route.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tensord::wire::RestKind;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t space = std::min(input.find(' '), size);
  const auto route = tensord::wire::ParseRestRoute(input.substr(0, space),
                                                   input.substr(std::min(space + 1, size)));
  TENSORD_CHECK((route.kind == RestKind::kBad) == !route.error.ok());
  TENSORD_CHECK(!route.version.has_value() || route.label.empty());
  if (route.kind <= RestKind::kMetadata && route.kind != RestKind::kList) {
    TENSORD_CHECK(!route.model.empty());
  }
  if (route.kind == RestKind::kBad) {
    const std::string text = tensord::wire::PrintError(tensord::base::Message(route.error));
    tensord::wire::JsonCursor cursor(text);
    TENSORD_CHECK(cursor.ReadValue().ok() && cursor.at() == cursor.end());
  }
  const std::string once = tensord::base::ToUtf8(input);
  TENSORD_CHECK(tensord::base::ToUtf8(once) == once);
  return 0;
}
