// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/oip/route.h"

#include <gtest/gtest.h>

#include <string>

namespace tensord::wire {
namespace {

struct Case {
  const char* method;
  const char* target;
  OipKind kind;
  const char* model = "";
  int64_t version = -1;
};

TEST(OipRoute, EveryPathHasItsCall) {
  const Case kCases[] = {
      {"GET", "/v2", OipKind::kServer},
      {"GET", "/v2/", OipKind::kServer},
      {"GET", "/v2?a=b", OipKind::kServer},
      {"GET", "/v2/health/live", OipKind::kLive},
      {"GET", "/v2/health/ready", OipKind::kReady},
      {"GET", "/v2/models/m", OipKind::kModel, "m"},
      {"GET", "/v2/models/a%2fb%20c", OipKind::kModel, "a/b c"},
      {"GET", "/v2/models/m/versions/3", OipKind::kModel, "m", 3},
      {"GET", "/v2/models/m/ready", OipKind::kModelReady, "m"},
      {"GET", "/v2/models/m/versions/3/ready", OipKind::kModelReady, "m", 3},
      {"POST", "/v2/models/m/infer", OipKind::kInfer, "m"},
      {"POST", "/v2/models/m/versions/12/infer", OipKind::kInfer, "m", 12},
      {"GET", "/v2/models/versions", OipKind::kModel, "versions"},
      {"GET", "/v2/models/stats", OipKind::kStatistics},
      {"GET", "/v2/models/m/config", OipKind::kConfig, "m"},
      {"GET", "/v2/models/m/stats", OipKind::kStatistics, "m"},
      {"GET", "/v2/models/m/versions/3/stats", OipKind::kStatistics, "m", 3},
      {"POST", "/v2/repository/index", OipKind::kIndex},
      {"POST", "/v2/repository/models/m/load", OipKind::kLoad, "m"},
      {"POST", "/v2/repository/models/m/unload", OipKind::kUnload, "m"},
      {"OPTIONS", "/v2/models/m/infer", OipKind::kPreflight},
      {"GET", "/v1/models/m", OipKind::kOutside},
      {"GET", "/v2x", OipKind::kOutside},
      {"GET", "/V2/models/m", OipKind::kOutside},
      {"GET", "//v2/models/m", OipKind::kOutside},
  };
  for (const Case& c : kCases) {
    const OipRoute route = ParseOipRoute(c.method, c.target);
    EXPECT_EQ(route.kind, c.kind) << c.target;
    EXPECT_EQ(route.model, c.model) << c.target;
    EXPECT_EQ(route.version.value_or(-1), c.version) << c.target;
  }
}

TEST(OipRoute, WhatIsNotExactlyAPathIsRefused) {
  const struct {
    const char* method;
    const char* target;
    int http_status;
  } kCases[] = {
      {"GET", "/v2/models", 404},
      {"GET", "/v2/models/", 404},
      {"GET", "/v2/models//ready", 404},
      {"GET", "/v2//models/m", 404},
      {"GET", "/v2/models/m/", 404},
      {"GET", "/v2/Models/m", 404},
      {"POST", "/v2/models/m/Infer", 404},
      {"POST", "/v2/models/m/infer/", 404},
      {"POST", "/v2/models/m/%69nfer", 404},
      {"POST", "/v2/models/m/generate", 404},
      {"GET", "/v2/models/m/versions//ready", 404},
      {"GET", "/v2/models/m/versions/x", 400},
      {"GET", "/v2/models/m/versions/-1", 400},
      {"GET", "/v2/models/m/versions/99999999999999999999", 400},
      {"GET", "/v2/systemsharedmemory/status", 404},
      {"POST", "/v2/cudasharedmemory/region/r/register", 404},
      {"GET", "/v2/models/m/infer", 405},
      {"POST", "/v2/models/stats", 405},
      {"POST", "/v2/models/m", 405},
      {"POST", "/v2/health/live", 405},
      {"GET", "/v2/repository/index", 405},
      {"DELETE", "/v2", 405},
      {"POST", "/v2/repository/models//load", 404},
  };
  for (const auto& c : kCases) {
    const OipRoute route = ParseOipRoute(c.method, c.target);
    EXPECT_EQ(route.kind, OipKind::kBad) << c.target;
    EXPECT_EQ(route.http_status, c.http_status) << c.target;
    EXPECT_FALSE(route.error.ok()) << c.target;
  }
}

}  // namespace
}  // namespace tensord::wire
