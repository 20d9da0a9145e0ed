// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// JSON beside RapidJSON on the same text: from the body of a request to a tensor, and from a tensor
// to the body of an answer. RapidJSON is used as tensorflow_model_server uses it: a DOM, numbers in
// full precision, NaN and infinities allowed.

#include <benchmark/benchmark.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "wire/json/print.h"
#include "wire/json/request.h"

namespace tensord::wire {
namespace {

constexpr int64_t kSide = 224;
constexpr int64_t kChannels = 3;

tensor::Signature OneFloat() {
  tensor::Endpoint input;
  input.name = "image";
  input.dtype = tensor::DType::kFloat;
  tensor::Signature signature;
  signature.inputs.push_back(std::move(input));
  return signature;
}

// 1.7 MB: one 224 x 224 image of 3 channels, as Python prints floats of 8 digits.
std::string ImageBody(bool named) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> between(0, 1);
  std::string body = named ? R"({"instances": [{"image": [)" : R"({"instances": [[)";
  char number[32];
  for (int64_t y = 0; y < kSide; ++y) {
    body += y == 0 ? "[" : ", [";
    for (int64_t x = 0; x < kSide; ++x) {
      body += x == 0 ? "[" : ", [";
      for (int64_t c = 0; c < kChannels; ++c) {
        std::snprintf(number, sizeof(number), "%s%.6f", c == 0 ? "" : ", ", between(random));
        body += number;
      }
      body += "]";
    }
    body += "]";
  }
  body += named ? "]}]}" : "]]}";
  return body;
}

void ToTensor(benchmark::State& state, const std::string& body) {
  const tensor::Signature signature = OneFloat();
  for (auto _ : state) {
    const auto json = ScanJsonRequest(body);
    auto tensors = JsonTensors(*json, signature);
    if (!tensors.ok()) return state.SkipWithError("not read");
    benchmark::DoNotOptimize(tensors->inputs.front().tensor.bytes.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(body.size()));
}

void ImageToTensor(benchmark::State& state) { ToTensor(state, ImageBody(/*named=*/false)); }
void NamedImageToTensor(benchmark::State& state) { ToTensor(state, ImageBody(/*named=*/true)); }

void SmallToTensor(benchmark::State& state) {
  ToTensor(state, R"({"instances": [[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]]})");
}

void Leaves(const rapidjson::Value& value, std::vector<float>* out) {
  if (!value.IsArray()) return out->push_back(static_cast<float>(value.GetDouble()));
  for (const rapidjson::Value& element : value.GetArray()) Leaves(element, out);
}

void ImageToTensorRapidJson(benchmark::State& state) {
  const std::string body = ImageBody(/*named=*/false);
  for (auto _ : state) {
    rapidjson::Document document;
    document.Parse<rapidjson::kParseFullPrecisionFlag | rapidjson::kParseNanAndInfFlag>(
        body.c_str());
    if (document.HasParseError()) return state.SkipWithError("not read");
    std::vector<float> values;
    Leaves(document["instances"], &values);
    benchmark::DoNotOptimize(values.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(body.size()));
}

std::vector<float> SomeFloats() {
  std::mt19937 random(2);
  std::uniform_real_distribution<float> between(-1, 1);
  std::vector<float> values(100'000);
  for (float& value : values) value = between(random);
  return values;
}

void FloatsToText(benchmark::State& state) {
  const std::vector<float> values = SomeFloats();
  const auto shape =
      tensor::Shape::Make(std::vector<int64_t>{1, static_cast<int64_t>(values.size())});
  const tensor::NamedTensor output{
      "y", {tensor::DType::kFloat, *shape, std::as_bytes(std::span(values))}};
  for (auto _ : state) {
    const auto text = PrintPredictions(/*row_format=*/true, std::span(&output, 1));
    if (!text.ok()) return state.SkipWithError("not printed");
    benchmark::DoNotOptimize(text->data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(values.size()));
}

void FloatsToTextRapidJson(benchmark::State& state) {
  const std::vector<float> values = SomeFloats();
  for (auto _ : state) {
    rapidjson::StringBuffer buffer;
    rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
    writer.StartArray();
    for (const float value : values) writer.Double(static_cast<double>(value));
    writer.EndArray();
    benchmark::DoNotOptimize(buffer.GetString());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(values.size()));
}

BENCHMARK(ImageToTensor)->Unit(benchmark::kMicrosecond);
BENCHMARK(NamedImageToTensor)->Unit(benchmark::kMicrosecond);
BENCHMARK(ImageToTensorRapidJson)->Unit(benchmark::kMicrosecond);
BENCHMARK(SmallToTensor)->Unit(benchmark::kNanosecond);
BENCHMARK(FloatsToText)->Unit(benchmark::kMicrosecond);
BENCHMARK(FloatsToTextRapidJson)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tensord::wire
