// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/tf_record.h"
#include "bench/ask.h"
#include "bench/http_answer.h"
#include "bench/load.h"
#include "bench/peer_words.h"
#include "bench/prepare.h"
#include "bench/process_cpu.h"
#include "bench/request.h"
#include "tensord/open_inference.pb.h"
#include "wire/prediction_log.h"

namespace tensord::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ProcessCpu, AProgramNamedLikeAStatLineIsReadAllTheSame) {
  const auto stat = ParseStat("7 (a) S 1 (x) R 42 7 7 0 -1 4194560 100 0 0 0 150 50 0 0 20 0", 100);
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->parent, 42);
  EXPECT_EQ(stat->cpu, absl::Seconds(2));
  EXPECT_FALSE(ParseStat("7 (a", 100).has_value());
}

TEST(ProcessCpu, ARoleThatAppearedCountsFromZero) {
  const CpuByRole used = Used({{"front", absl::Seconds(1)}},
                              {{"front", absl::Seconds(3)}, {"worker", absl::Seconds(1)}});
  EXPECT_EQ(used.at("front"), absl::Seconds(2));
  EXPECT_EQ(used.at("worker"), absl::Seconds(1));
}

TEST(Request, AnInputIsWrittenAsNameTypeAndDims) {
  const auto input = ParseInput("x:float:1,2");
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_EQ(MakePredictJson("", {*input}), R"({"inputs":{"x":[[0.5,0.5]]}})");
  EXPECT_THAT(MakePredictRequest("half", "", {*input}), HasSubstr("half"));
  EXPECT_FALSE(ParseInput("x:floaty:1").ok());
  EXPECT_FALSE(ParseInput("x:float:1,b").ok());
  EXPECT_FALSE(ParseInput("x").ok());
}

TEST(Request, MadeInputsFillTheOpenDimsOfASignature) {
  tensor::Signature signature{.name = "s", .method_name = "", .inputs = {}, .outputs = {}};
  signature.inputs.push_back({.name = "a",
                              .tensor_name = "a:0",
                              .dtype = tensor::DType::kFloat,
                              .shape = {.unknown_rank = false, .dims = {-1, 3, -1}},
                              .default_value = std::nullopt});
  signature.inputs.push_back({.name = "b",
                              .tensor_name = "b:0",
                              .dtype = tensor::DType::kString,
                              .shape = {},
                              .default_value = std::nullopt});
  const auto inputs = MakeInputs(signature, 4);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  ASSERT_EQ(inputs->size(), 2u);
  EXPECT_EQ((*inputs)[0].shape, tensor::Shape({4, 3, 1}));
  EXPECT_EQ((*inputs)[1].shape, tensor::Shape({4}));
  signature.inputs[1].dense = false;
  EXPECT_THAT(std::string(MakeInputs(signature, 1).status().message()), HasSubstr("input 'b'"));
}

TEST(Request, TheServerIsToldTheDeadlineInAtMostEightDigits) {
  const auto timeout = [](absl::Duration deadline) {
    const Request request = MakeGrpcRequest("h:1", "/p", "abc", {}, deadline);
    return request.fields.back();
  };
  EXPECT_EQ(timeout(absl::Milliseconds(100)),
            std::pair(std::string("grpc-timeout"), std::string("100000u")));
  EXPECT_EQ(timeout(absl::Hours(1)).second, "3600000m");
  EXPECT_EQ(timeout(absl::Hours(100'000)).second, "99999999m");
  EXPECT_EQ(timeout(absl::InfiniteDuration()).first, "user-agent");
  EXPECT_EQ(MakeGrpcRequest("h:1", "/p", "abc", {}, absl::InfiniteDuration()).bytes,
            std::string("\0\0\0\0\3abc", 8));
}

TEST(Request, TheOpenInferenceProtocolHasTwoForms) {
  const std::vector<MadeInput> inputs = {
      {.name = "x", .dtype = tensor::DType::kFloat, .shape = {1, 2}},
      {.name = "s", .dtype = tensor::DType::kString, .shape = {}}};
  EXPECT_EQ(MakeOipJson("", inputs).value(),
            R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[[0.5,0.5]]},)"
            R"({"name":"s","datatype":"BYTES","shape":[],"data":[""]}]})");
  EXPECT_THAT(MakeOipJson("other", inputs).value(),
              HasSubstr(R"("parameters":{"signature_name":"other"})"));
  const std::string message = MakeOipRequest("half", "other", inputs).value();
  inference::ModelInferRequest request;
  ASSERT_TRUE(request.ParseFromString(message));
  EXPECT_EQ(request.model_name(), "half");
  EXPECT_EQ(request.parameters().at("signature_name").string_param(), "other");
  ASSERT_EQ(request.inputs_size(), 2);
  EXPECT_EQ(request.inputs(0).datatype(), "FP32");
  EXPECT_EQ(request.inputs(0).shape_size(), 2);
  EXPECT_EQ(request.raw_input_contents(0).size(), 8u);
  EXPECT_EQ(request.raw_input_contents(1), std::string(4, '\0'));
  const auto complex =
      MakeOipJson("", {{.name = "c", .dtype = tensor::DType::kComplex64, .shape = {1}}});
  EXPECT_THAT(std::string(complex.status().message()), HasSubstr("input 'c'"));
}

TEST(Ask, MetadataOfTheOpenInferenceProtocolIsASignature) {
  const auto signature =
      OipSignatureOfJson(R"({"name":"m","versions":["1"],"parameters":{},"inputs":[)"
                         R"({"name":"x","datatype":"INT32","shape":[-1,3]}],"outputs":[]})");
  ASSERT_TRUE(signature.ok()) << signature.status();
  ASSERT_EQ(signature->inputs.size(), 1u);
  EXPECT_EQ(signature->inputs[0].dtype, tensor::DType::kInt32);
  EXPECT_EQ(MakeInputs(*signature, 4).value()[0].shape, tensor::Shape({4, 3}));
  EXPECT_FALSE(OipSignatureOfJson("{}").ok());
  EXPECT_FALSE(OipSignatureOfJson("[]").ok());
}

TEST(Bodies, AreToldApartByTheirBytes) {
  const std::string request = MakePredictRequest("half", "", {});
  const auto bodies = BodiesOf(request, "Predict", false);
  ASSERT_TRUE(bodies.ok()) << bodies.status();
  EXPECT_EQ(bodies->front().bytes, request);
  EXPECT_TRUE(BodiesOf(R"( {"instances": [1]})", "Predict", true).ok());
  EXPECT_THAT(std::string(BodiesOf("{}", "Predict", false).status().message()),
              HasSubstr("add --rest"));
  EXPECT_THAT(std::string(BodiesOf(request, "Predict", true).status().message()),
              HasSubstr("not a JSON document"));
  EXPECT_THAT(std::string(BodiesOf("nonsense", "Predict", false).status().message()),
              HasSubstr("neither a serialized PredictRequest"));
}

TEST(Bodies, OfRecordsGoToTheMethodOfTheirKind) {
  std::string file;
  base::AppendTfRecord(wire::EncodePredictionLog(wire::LoggedCall::kPredict, "p", "", {}), &file);
  base::AppendTfRecord(wire::EncodePredictionLog(wire::LoggedCall::kClassify, "c", "", {}), &file);
  const auto bodies = BodiesOf(file, "Predict", false);
  ASSERT_TRUE(bodies.ok()) << bodies.status();
  ASSERT_EQ(bodies->size(), 2u);
  EXPECT_EQ((*bodies)[0].method, "Predict");
  EXPECT_EQ((*bodies)[0].bytes, "p");
  EXPECT_EQ((*bodies)[1].method, "Classify");
  EXPECT_THAT(std::string(BodiesOf(file, "Predict", true).status().message()), HasSubstr("gRPC"));
  file.resize(file.size() - 1);
  EXPECT_THAT(std::string(BodiesOf(file, "Predict", false).status().message()),
              HasSubstr("damaged"));
}

TEST(Ask, SignaturesAreReadFromTheJsonOfAnyServer) {
  const auto list = SignaturesOfJson(R"({"model_spec": {"name": "m", "version": "1"},
    "metadata": {"signature_def": {"signature_def": {"serving_default": {
      "inputs": {"x": {"dtype": "DT_FLOAT", "name": "x:0", "tensor_shape":
        {"dim": [{"size": "-1", "name": ""}, {"size": "4", "name": ""}], "unknown_rank": false}}},
      "outputs": {}, "method_name": "tensorflow/serving/predict"}}}}})");
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->size(), 1u);
  EXPECT_EQ(list->front().inputs.front().shape.dims, (std::vector<int64_t>{-1, 4}));
  EXPECT_FALSE(SignaturesOfJson("[]").ok());
  EXPECT_FALSE(SignaturesOfJson("{}").ok());
}

TEST(Ask, ModelsAreReadFromTheListAndNothingElse) {
  EXPECT_THAT(ModelsOfJson(R"({"models": [{"name": "a"}, {"name": "b"}, {}]})"),
              ElementsAre("a", "b"));
  EXPECT_THAT(ModelsOfJson(R"({"models": 1})"), IsEmpty());
  EXPECT_THAT(ModelsOfJson("not json"), IsEmpty());
}

TEST(PeerWords, TellWhichPortToTakeInstead) {
  EXPECT_THAT(NotHttp2("HTTP/1.1 400 Bad Request"), HasSubstr("add --rest"));
  EXPECT_EQ(NotHttp2(std::string("\0\0\x06\x04", 4)), "");
  EXPECT_THAT(NotHttp1(std::string("\0\0\x06\x04\0", 5)), HasSubstr("leave out --rest"));
  EXPECT_THAT(NotHttp2("\x15\x03\x03"), HasSubstr("TLS"));
}

// All of `text`, `piece` bytes at a time.
HttpAnswer Fed(std::string_view text, size_t piece) {
  HttpAnswer answer;
  answer.Reset(true);
  HttpAnswer::State state = HttpAnswer::State::kMore;
  while (!text.empty() && state == HttpAnswer::State::kMore) {
    std::string_view part = text.substr(0, piece);
    text.remove_prefix(part.size());
    state = answer.Feed(&part);
    EXPECT_THAT(part, IsEmpty());
  }
  EXPECT_EQ(state, HttpAnswer::State::kDone);
  return answer;
}

TEST(HttpAnswer, IsReadInPiecesOfAnySize) {
  const std::string sized =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-Length: 5\r\nA: b\r\n\r\nhello";
  const std::string chunked =
      "HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
      "3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nTrailer: t\r\n\r\n";
  for (size_t piece = 1; piece <= chunked.size(); ++piece) {
    const HttpAnswer first = Fed(sized, piece);
    EXPECT_EQ(first.status(), 200);
    EXPECT_EQ(first.body(), "hello");
    EXPECT_TRUE(first.keeps_alive());
    const HttpAnswer second = Fed(chunked, piece);
    EXPECT_EQ(second.status(), 503);
    EXPECT_EQ(second.body(), "hello");
    EXPECT_FALSE(second.keeps_alive());
  }
}

TEST(HttpAnswer, WithoutALengthEndsWithTheConnection) {
  HttpAnswer answer;
  answer.Reset(true);
  std::string_view text = "HTTP/1.0 200 OK\r\n\r\nall";
  EXPECT_EQ(answer.Feed(&text), HttpAnswer::State::kMore);
  EXPECT_TRUE(answer.End());
  EXPECT_EQ(answer.body(), "all");
}

TEST(HttpAnswer, OtherProtocolsAreNoAnswer) {
  HttpAnswer answer;
  answer.Reset(false);
  std::string_view text("\0\0\x06\x04", 4);
  EXPECT_EQ(answer.Feed(&text), HttpAnswer::State::kBad);
  answer.Reset(false);
  text = "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n";
  EXPECT_EQ(answer.Feed(&text), HttpAnswer::State::kBad);
}

TEST(Load, NobodyListeningIsSaidWithThePort) {
  const auto address = Resolve("127.0.0.1", 1);
  ASSERT_TRUE(address.ok()) << address.status();
  Mix mix;
  mix.kinds.push_back(
      {.name = "a", .variants = {MakeGrpcRequest("", "/", "", {}, absl::InfiniteDuration())}});
  for (const bool rest : {false, true}) {
    LoadPlan plan{.address = &*address, .mix = &mix};
    plan.rest = rest;
    plan.threads = 2;
    plan.connections = 4;
    plan.in_flight = 4;
    const auto result = RunLoad(plan, nullptr);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(result.status().message()), HasSubstr("127.0.0.1:1"));
    EXPECT_THAT(std::string(Ask(*address, rest, mix.kinds[0].variants[0]).status().message()),
                HasSubstr("--port"));
  }
}

TEST(Load, AHostWithoutAddressIsNamed) {
  EXPECT_THAT(std::string(Resolve("no such host", 1).status().message()),
              HasSubstr("no such host"));
}

}  // namespace
}  // namespace tensord::bench
