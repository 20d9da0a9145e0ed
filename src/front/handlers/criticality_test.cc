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

TEST(Criticality, IsThatOfThePriorityUnlessAHeaderNamesIt) {
  const Criticality kOrder[] = {Criticality::kCritical,  // Of 0, which is none.
                                Criticality::kCriticalPlus,  Criticality::kCritical,
                                Criticality::kSheddablePlus, Criticality::kSheddable,
                                Criticality::kSheddable};
  for (uint64_t priority = 0; priority < std::size(kOrder); ++priority) {
    EXPECT_EQ(*CriticalityOf(RequestHead{}, priority), kOrder[priority]) << priority;
  }
  EXPECT_EQ(*CriticalityOf(RequestHead{}, UINT64_MAX), Criticality::kSheddable);
  RequestHead head;
  head.headers = {{"tensord-criticality", "sheddable"}};
  EXPECT_EQ(*CriticalityOf(head, 1), Criticality::kSheddable);
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
