// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// A method, a space and a target. A route that names a model came from exactly one path.

#include <string>
#include <string_view>

#include "base/check.h"
#include "wire/oip/route.h"

namespace tensord {
namespace {

void Try(std::string_view method, std::string_view target) {
  const wire::OipRoute route = wire::ParseOipRoute(method, target);
  const bool bad = route.kind == wire::OipKind::kBad;
  TENSORD_CHECK(bad == !route.error.ok());
  TENSORD_CHECK(bad == (route.http_status != 200));
  const std::string_view path = target.substr(0, target.find('?'));
  if (route.kind != wire::OipKind::kOutside) TENSORD_CHECK(path.substr(0, 3) == "/v2");
  const bool served =
      !bad && route.kind != wire::OipKind::kOutside && route.kind != wire::OipKind::kPreflight;
  if (served) TENSORD_CHECK(path.find("//") == std::string_view::npos);
  if (!route.model.empty()) TENSORD_CHECK(served);
  if (route.kind == wire::OipKind::kInfer) TENSORD_CHECK(!route.model.empty());
}

}  // namespace
}  // namespace tensord

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t space = std::min(input.find(' '), size);
  tensord::Try(input.substr(0, space), input.substr(std::min(space + 1, size)));
  return 0;
}
