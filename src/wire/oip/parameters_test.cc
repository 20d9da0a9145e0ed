// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/oip/parameters.h"

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::wire {
namespace {

using ::testing::HasSubstr;

OipParameter Text(std::string text) { return text; }

TEST(OipParameters, TimeoutAndPriorityAreNumbers) {
  OipUrgency urgency;
  EXPECT_TRUE(TakeOipParameter("timeout", uint64_t{1500}, &urgency).ok());
  EXPECT_TRUE(TakeOipParameter("priority", uint64_t{2}, &urgency).ok());
  EXPECT_EQ(urgency.timeout_micros, 1500u);
  EXPECT_EQ(urgency.priority, 2u);
  for (const OipParameter& bad : {Text("1"), OipParameter(true), OipParameter()}) {
    const absl::Status status = TakeOipParameter("timeout", bad, &urgency);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(base::Message(status), HasSubstr("timeout must be a whole number"));
  }
}

TEST(OipParameters, ASequenceIsRefusedByTheNameOfItsParameter) {
  OipUrgency urgency;
  for (const OipParameter& given : {Text("a"), OipParameter(uint64_t{7})}) {
    const absl::Status status = TakeOipParameter("sequence_id", given, &urgency);
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    EXPECT_THAT(base::Message(status), HasSubstr("sequence_id"));
  }
  EXPECT_TRUE(absl::IsUnimplemented(TakeOipParameter("sequence_start", true, &urgency)));
  for (const OipParameter& none : {Text(""), OipParameter(uint64_t{0}), OipParameter(false)}) {
    EXPECT_TRUE(TakeOipParameter("sequence_id", none, &urgency).ok());
  }
}

TEST(OipParameters, OthersAreNotTheirBusiness) {
  for (const char* name : {"signature_name", "time", "my_own"}) EXPECT_FALSE(IsOipParameter(name));
  EXPECT_TRUE(CheckOipTensorParameter("binary_data").ok());
}

TEST(OipParameters, ExtensionsOfTensorsAreRefusedByName) {
  for (const char* name : {"shared_memory_region", "shared_memory_offset", "classification"}) {
    const absl::Status status = CheckOipTensorParameter(name);
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    EXPECT_THAT(base::Message(status), HasSubstr(name));
  }
}

}  // namespace
}  // namespace tensord::wire
