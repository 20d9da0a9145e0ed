// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "front/handlers/criticality.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace tensord::front {
namespace {

using tensor::Criticality;
using ::testing::HasSubstr;

absl::StatusOr<Criticality> Of(std::string_view value) {
  RequestHead head;
  head.headers = {{"host", "a"}, {"tensord-criticality", value}};
  return CriticalityOf(head);
}

TEST(Criticality, IsWhatTheHeaderNames) {
  EXPECT_EQ(*Of("critical-plus"), Criticality::kCriticalPlus);
  EXPECT_EQ(*Of("critical"), Criticality::kCritical);
  EXPECT_EQ(*Of("Sheddable-Plus"), Criticality::kSheddablePlus);
  EXPECT_EQ(*Of("SHEDDABLE"), Criticality::kSheddable);
}

TEST(Criticality, IsCriticalWithoutAHeader) {
  EXPECT_EQ(*CriticalityOf(RequestHead{}), Criticality::kCritical);
}

TEST(Criticality, AnUnknownNameIsRefusedWithTheKnownOnes) {
  for (const std::string_view value : {"", "shedable", "critical_plus", "critical "}) {
    const absl::Status status = Of(value).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << value;
    EXPECT_THAT(std::string(base::Message(status)), HasSubstr("sheddable-plus"));
  }
}

}  // namespace
}  // namespace tensord::front
