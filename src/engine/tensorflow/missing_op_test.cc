// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/tensorflow/missing_op.h"

#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(MissingOp, IsFoundInTheRuntimesWords) {
  EXPECT_EQ(MissingOp("Op type not registered 'Addons>GeluX' in binary running on host. Make sure"),
            "Addons>GeluX");
  EXPECT_EQ(MissingOp("No OpKernel was registered to support Op 'PyFunc' used by {{node f}}"),
            "PyFunc");
  EXPECT_EQ(MissingOp("Could not find meta graph def matching supplied tags"), "");
}

TEST(MissingOp, IsNamedWithThePackageThatHoldsIt) {
  const absl::Status status =
      ExplainMissingOp(absl::NotFoundError("Op type not registered 'TFText>RoundRobinTrim' in x"));
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(base::Message(status)),
              AllOf(HasSubstr("Op type not registered 'TFText>RoundRobinTrim' in x ("),
                    HasSubstr("package tensorflow-text"), HasSubstr("--op_library")));
  EXPECT_THAT(HelpForOp("SimpleMLLoadModelFromPath"), HasSubstr("tensorflow_decision_forests"));
  EXPECT_THAT(HelpForOp("IO>LayerKafkaCall"), HasSubstr("tensorflow-io"));
}

TEST(MissingOp, OfAnUnknownPackageAsksForItsLibrary) {
  EXPECT_THAT(HelpForOp("TensordProbe"),
              AllOf(HasSubstr("TensordProbe"), HasSubstr("op_libraries setting")));
}

TEST(MissingOp, ThatNoLibraryCanBringSaysWhatElseToDo) {
  EXPECT_THAT(HelpForOp("EagerPyFunc"), HasSubstr("without tf.py_function"));
}

TEST(MissingOp, LeavesOtherErrorsAlone) {
  const absl::Status other = absl::DataLossError("file is too short");
  EXPECT_EQ(ExplainMissingOp(other), other);
}

}  // namespace
}  // namespace tensord::engine
