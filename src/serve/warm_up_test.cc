// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "serve/warm_up.h"

#include <cstring>
#include <fstream>
#include <functional>
#include <optional>

#include "base/limits.h"
#include "base/text.h"
#include "base/tf_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/prediction_log.pb.h"

namespace tensord::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A worker that answers each run when the loop comes round.
class AnsweringWorker final : public fleet::Worker {
 public:
  explicit AnsweringWorker(loop::EventLoop& loop) : loop_(loop) {}

  int Free() const override { return free; }
  void Submit(fleet::RunSpec spec, fleet::RunDone done) override {
    rows.push_back(0);
    for (const tensor::TensorView& piece : spec.inputs[0]) rows.back() += piece.shape.dim(0);
    float first = 0;
    std::memcpy(&first, spec.inputs[0][0].bytes.data(), sizeof(first));
    firsts.push_back(first);
    fleet::RunOutcome outcome = answer ? answer(first) : fleet::RunOutcome{};
    loop_.Defer([done = std::move(done), outcome]() mutable { done(outcome); });
  }

  void Abandon(uint64_t, absl::Time) override {}

  int free = 1;
  std::vector<int64_t> rows;  // Of each run.
  std::vector<float> firsts;  // The first number of each.
  std::function<fleet::RunOutcome(float)> answer;

 private:
  loop::EventLoop& loop_;
};

// A serialized PredictionLog of a Predict call.
std::string Predict(const std::vector<float>& x, const std::string& input = "x") {
  tensorflow::serving::PredictionLog log;
  auto* request = log.mutable_predict_log()->mutable_request();
  request->mutable_model_spec()->set_name("somebody");
  tensorflow::TensorProto& tensor = (*request->mutable_inputs())[input];
  tensor.set_dtype(tensorflow::DT_FLOAT);
  tensor.mutable_tensor_shape()->add_dim()->set_size(static_cast<int64_t>(x.size()));
  for (const float value : x) tensor.add_float_val(value);
  return log.SerializeAsString();
}

// x, a vector, to y, another.
tensor::SignatureList Signatures() {
  tensor::SignatureList list(1);
  list[0].name = "serving_default";
  list[0].inputs.resize(1);
  list[0].outputs.resize(1);
  for (tensor::Endpoint* endpoint : {&list[0].inputs[0], &list[0].outputs[0]}) {
    endpoint->name = endpoint == &list[0].inputs[0] ? "x" : "y";
    endpoint->tensor_name = endpoint->name + ":0";
    endpoint->dtype = tensor::DType::kFloat;
    endpoint->shape = {.unknown_rank = false, .dims = {-1}};
  }
  return list;
}

class WarmUpTest : public testing::Test {
 protected:
  ~WarmUpTest() override { mailbox_->Close(); }

  // Replays, until the end or, if the worker stays busy for ever, until nothing happens.
  WarmUpReport Replay(const std::vector<std::string>& records, WarmUpPlan plan = {}) {
    std::string bytes;
    for (const std::string& record : records) base::AppendTfRecord(record, &bytes);
    return ReplayBytes(bytes, std::move(plan));
  }
  WarmUpReport ReplayBytes(const std::string& bytes, WarmUpPlan plan = {}) {
    plan.file = testing::TempDir() + "/warm_up_records";
    std::ofstream(plan.file, std::ios::binary) << bytes;
    std::optional<WarmUpReport> report;
    WarmUp warm_up(*loop_, mailbox_, &worker_, Signatures(), std::move(plan),
                   [&report](WarmUpReport done) { report = std::move(done); });
    while (!report.has_value()) loop_->RunOnce(absl::InfiniteFuture());
    return *report;
  }

  std::unique_ptr<loop::EventLoop> loop_ = *loop::EventLoop::Create();
  std::shared_ptr<models::Mailbox> mailbox_ = std::make_shared<models::Mailbox>(loop_.get());
  AnsweringWorker worker_{*loop_};
};

TEST_F(WarmUpTest, ReplaysEachRecordAsOftenAsAsked) {
  const WarmUpReport report = Replay({Predict({1}), Predict({2, 3})}, {.file = "", .repeats = 2});
  EXPECT_THAT(worker_.firsts, ElementsAre(1, 1, 2, 2));
  EXPECT_TRUE(report.status.ok());
  EXPECT_EQ(report.records, 2u);
  EXPECT_EQ(report.runs, 4u);
  EXPECT_THAT(report.warnings, IsEmpty());
}

TEST_F(WarmUpTest, RunsTheBatchSizesThatNoRecordHas) {
  Replay({Predict({7, 8})}, {.file = "", .rows = {1, 2, 4}});
  EXPECT_THAT(worker_.rows, ElementsAre(2, 1, 4));
  EXPECT_THAT(worker_.firsts, ElementsAre(7, 7, 7));
}

TEST_F(WarmUpTest, ABadRecordIsAWarningAndTheOthersRun) {
  worker_.answer = [](float first) {
    return fleet::RunOutcome{.status = first == 2 ? absl::InternalError("odd") : absl::OkStatus()};
  };
  const WarmUpReport report =
      Replay({Predict({1}), Predict({2}), "nonsense", Predict({3}, "z"), Predict({4})},
             {.file = "", .repeats = 3});
  EXPECT_TRUE(report.status.ok());
  EXPECT_EQ(report.records, 2u);
  EXPECT_THAT(worker_.firsts, ElementsAre(1, 1, 1, 2, 4, 4, 4));
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("record 2: odd"), HasSubstr("record 3: "),
                                           HasSubstr("record 4: ")));
}

TEST_F(WarmUpTest, OfManyBadRecordsTheFirstOnesAreSaid) {
  const WarmUpReport report = Replay(std::vector<std::string>(100, "nonsense"));
  ASSERT_THAT(report.warnings, SizeIs(9));
  EXPECT_THAT(report.warnings.back(), HasSubstr("92 more records failed"));
}

TEST_F(WarmUpTest, StrictEndsWithTheFirstProblem) {
  const WarmUpReport report = Replay({Predict({1}), "nonsense", Predict({2})},
                                     {.file = "", .strict = true, .rows = {1, 8}});
  EXPECT_EQ(report.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(base::Message(report.status)), HasSubstr("record 2: "));
  EXPECT_THAT(worker_.firsts, ElementsAre(1));
}

TEST_F(WarmUpTest, WhatIsNoRecordFileIsAProblemOfTheFile) {
  const WarmUpReport lenient = ReplayBytes("this is no file of records at all");
  EXPECT_THAT(lenient.warnings, ElementsAre(HasSubstr("TFRecord")));
  const WarmUpReport strict =
      ReplayBytes("this is no file of records at all", {.file = "", .strict = true});
  EXPECT_EQ(strict.status.code(), absl::StatusCode::kDataLoss);
}

TEST_F(WarmUpTest, EmptyRecordsAndSessionRunsAreNothingToDo) {
  tensorflow::serving::PredictionLog session_run;
  session_run.mutable_session_run_log();
  const WarmUpReport report =
      Replay({"", session_run.SerializeAsString()}, {.file = "", .strict = true});
  EXPECT_TRUE(report.status.ok());
  EXPECT_EQ(report.runs, 0u);
}

TEST_F(WarmUpTest, NoMoreRecordsThanTheLimit) {
  const std::vector<std::string> many(limits::kWarmUpRecordsMax + 5, Predict({1}));
  const WarmUpReport report = Replay(many);
  EXPECT_EQ(report.records, limits::kWarmUpRecordsMax);
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("more than 1000 records")));
  EXPECT_EQ(Replay(many, {.file = "", .strict = true}).status.code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(WarmUpTest, AWorkerThatIsToStopEndsItInSilence) {
  worker_.free = 0;
  const std::string file = testing::TempDir() + "/warm_up_stopped";
  std::string bytes;
  base::AppendTfRecord(Predict({1}), &bytes);
  std::ofstream(file, std::ios::binary) << bytes;
  bool done = false;
  auto warm_up =
      std::make_unique<WarmUp>(*loop_, mailbox_, &worker_, Signatures(), WarmUpPlan{.file = file},
                               [&done](const WarmUpReport&) { done = true; });
  const absl::Time end = base::MonotonicClock().Now() + absl::Milliseconds(50);
  while (base::MonotonicClock().Now() < end) loop_->RunOnce(end);
  EXPECT_FALSE(done);
  EXPECT_THAT(worker_.rows, IsEmpty());
  warm_up.reset();
}

}  // namespace
}  // namespace tensord::serve
