// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/harness.h"

namespace tensord::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

class ModelsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!ThePlaces().why.empty()) return;
    absl::StatusOr<std::unique_ptr<TestZygote>> zygote = TestZygote::Start({});
    ASSERT_TRUE(zygote.ok()) << zygote.status();
    zygote_ = *std::move(zygote);
  }
  static void TearDownTestSuite() { zygote_.reset(); }
  void SetUp() override {
    if (!ThePlaces().why.empty()) GTEST_SKIP() << ThePlaces().why;
  }

  static std::unique_ptr<TestWorker> Fork() {
    absl::StatusOr<std::unique_ptr<TestWorker>> worker = zygote_->Fork();
    EXPECT_TRUE(worker.ok()) << worker.status();
    return worker.ok() ? *std::move(worker) : nullptr;
  }
  static std::unique_ptr<TestWorker> LoadModel(const std::string& path) {
    std::unique_ptr<TestWorker> worker = Fork();
    if (worker == nullptr) return nullptr;
    const absl::Status status = worker->Load(TestWorker::LoadOf(ThePlaces().models + "/" + path));
    EXPECT_TRUE(status.ok()) << status << "\n" << worker->Output();
    return worker;
  }

  static inline std::unique_ptr<TestZygote> zygote_;
};

TEST_F(ModelsTest, HalfPlusTwoAnswersARun) {
  const auto worker = LoadModel("half_plus_two/00000123");
  ASSERT_NE(worker, nullptr);
  const tensor::Tensor x = Floats({1, 2, 5});
  const auto answer = worker->Run("serving_default", {&x});
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_TRUE(answer->completion.status.ok()) << answer->completion.status;
  ASSERT_EQ(answer->outputs.size(), 1u);
  EXPECT_THAT(Values<float>(answer->outputs[0]),
              ElementsAre(FloatEq(2.5), FloatEq(3), FloatEq(4.5)));
  for (const std::string& line : worker->info().sandbox) GTEST_LOG_(INFO) << line;
  for (const std::string& line : worker->info().warnings) GTEST_LOG_(INFO) << line;
  GTEST_LOG_(INFO) << "private " << worker->info().private_bytes << " load "
                   << worker->info().load_microseconds << " start " << worker->start();
  GTEST_LOG_(INFO) << worker->Output();
}

}  // namespace
}  // namespace tensord::testing
