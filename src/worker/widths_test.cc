// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/widths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing/fake_engine.h"

namespace tensord::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

tensor::Signature Named(const std::string& name) {
  tensor::Signature signature;
  signature.name = name;
  tensor::Endpoint& input = signature.inputs.emplace_back();
  input.name = "x";
  input.dtype = tensor::DType::kFloat;
  input.shape.dims = {-1, 2};
  return signature;
}

// A model whose runs take 100 ms of CPU, of which the calling thread spends `own_share`.
class WidthsTest : public ::testing::Test {
 protected:
  WidthReport Choose() {
    for (const char* name : {"a", "b", "__saved_model_init_op"}) {
      spec_.signatures.push_back(Named(name));
    }
    spec_.narrow_warmed = &warmed_;
    spec_.run =
        [this](int signature,
               std::span<const tensor::TensorView>) -> absl::StatusOr<std::vector<tensor::Tensor>> {
      ++runs_;
      times_.process += run_time_;
      times_.thread += own_share_[static_cast<size_t>(signature)] * run_time_;
      if (!fails_.ok()) return fails_;
      return std::vector<tensor::Tensor>();
    };
    engine::FakeModel model(std::move(spec_));
    options_.cpu_times = [this] { return times_; };
    return ChooseWidths(model, options_);
  }

  engine::FakeModelSpec spec_;
  std::vector<double> own_share_ = {0.5, 1.0, 0.5};
  WidthOptions options_{
      .narrow_session_config = "\x10\x01", .private_bytes = 100, .private_bytes_max = 100};
  absl::Duration run_time_ = absl::Milliseconds(100);
  CpuTimes times_;
  absl::Status fails_;
  int runs_ = 0;
  std::vector<int> warmed_;
};

TEST_F(WidthsTest, SignaturesThatUseSeveralThreadsAreWarmedInASecondSession) {
  const WidthReport report = Choose();
  EXPECT_TRUE(report.two);
  EXPECT_THAT(report.warnings, IsEmpty());
  EXPECT_THAT(warmed_, ElementsAre(0));
}

TEST_F(WidthsTest, AModelWhoseRunsStayInTheirThreadHasOneSession) {
  own_share_ = {0.9, 1.0, 0.5};
  EXPECT_FALSE(Choose().two);
  EXPECT_THAT(warmed_, IsEmpty());
}

TEST_F(WidthsTest, SlowRunsAreMeasuredForTheFirstSignatureAlone) {
  own_share_ = {1.0, 0.5, 0.5};
  run_time_ = absl::Seconds(1);
  EXPECT_FALSE(Choose().two);
  EXPECT_EQ(runs_, 4);
}

TEST_F(WidthsTest, ALargeModelHasOneSessionAndSaysWhy) {
  options_.private_bytes = 101;
  const WidthReport report = Choose();
  EXPECT_FALSE(report.two);
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("101 bytes more, and 100 are allowed")));
}

TEST_F(WidthsTest, NothingIsRunWhenNoSecondSessionIsWanted) {
  options_.narrow_session_config.clear();
  EXPECT_FALSE(Choose().two);
  EXPECT_EQ(runs_, 0);
}

TEST_F(WidthsTest, ASignatureThatZerosAreNoInputForStaysWide) {
  fails_ = absl::InvalidArgumentError("not a picture");
  const WidthReport report = Choose();
  EXPECT_FALSE(report.two);
  EXPECT_THAT(report.warnings, IsEmpty());
}

TEST_F(WidthsTest, ASecondSessionThatCannotBeOpenedIsAWarning) {
  spec_.narrow = absl::ResourceExhaustedError("out of memory");
  const WidthReport report = Choose();
  EXPECT_FALSE(report.two);
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("second session")));
}

TEST(ReadCpuTimes, AThreadsTimeIsPartOfItsProcesss) {
  const CpuTimes before = ReadCpuTimes();
  double sum = 0;
  for (int i = 0; i < 1'000'000; ++i) sum += i;
  EXPECT_GT(sum, 0);
  const CpuTimes after = ReadCpuTimes();
  EXPECT_GT(after.thread, before.thread);
  // Half: the two clocks are read one after the other.
  EXPECT_GE(after.process - before.process, (after.thread - before.thread) / 2);
}

}  // namespace
}  // namespace tensord::worker
