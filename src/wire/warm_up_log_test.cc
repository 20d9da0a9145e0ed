// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/warm_up_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tensord/prediction_log.pb.h"

namespace tensord::wire {
namespace {

using Kind = WarmUpRecord::Kind;
namespace tfs = tensorflow::serving;

TEST(WarmUpLog, GivesKindAndRequest) {
  tfs::PredictionLog log;
  log.mutable_log_metadata()->mutable_model_spec()->set_name("another");
  log.mutable_predict_log()->mutable_request()->mutable_model_spec()->set_name("m");
  log.mutable_predict_log()->mutable_response()->mutable_model_spec()->set_name("answered");
  const std::string bytes = log.SerializeAsString();
  const auto record = ParseWarmUpRecord(bytes);
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->kind, Kind::kPredict);
  EXPECT_EQ(record->request, log.predict_log().request().SerializeAsString());
}

TEST(WarmUpLog, KnowsEachKind) {
  tfs::PredictionLog log;
  log.mutable_classify_log();
  EXPECT_EQ(ParseWarmUpRecord(log.SerializeAsString())->kind, Kind::kClassify);
  log.mutable_regress_log();
  EXPECT_EQ(ParseWarmUpRecord(log.SerializeAsString())->kind, Kind::kRegress);
  log.mutable_multi_inference_log();
  EXPECT_EQ(ParseWarmUpRecord(log.SerializeAsString())->kind, Kind::kMultiInference);
  log.mutable_session_run_log();
  EXPECT_EQ(ParseWarmUpRecord(log.SerializeAsString())->kind, Kind::kSessionRun);
  log.mutable_predict_streamed_log();
  EXPECT_EQ(ParseWarmUpRecord(log.SerializeAsString())->kind, Kind::kPredictStreamed);
  EXPECT_EQ(ParseWarmUpRecord("")->kind, Kind::kNone);
}

TEST(WarmUpLog, RefusesWhatIsNone) {
  EXPECT_FALSE(ParseWarmUpRecord("no protobuf").ok());
  EXPECT_FALSE(ParseWarmUpRecord("\x32\x7f").ok()) << "cut short";
  EXPECT_FALSE(ParseWarmUpRecord("\x30\x01").ok()) << "a number where a message belongs";
  EXPECT_FALSE(ParseWarmUpRecord(std::string("\x32\x02\x0a\x05")).ok()) << "cut inside";
}

}  // namespace
}  // namespace tensord::wire
