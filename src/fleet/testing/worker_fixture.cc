// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/testing/worker_fixture.h"

#include <cstring>
#include <utility>

#include "base/text.h"
#include "gmock/gmock.h"
#include "tensor/string_layout.h"

namespace tensord::fleet {

void WorkerFixture::Start(uint32_t executors, uint64_t segment_bytes) {
  auto loop = loop::EventLoop::Create(clock_);
  ASSERT_TRUE(loop.ok()) << loop.status();
  loop_ = *std::move(loop);
  FakeProcess::Pair pair = FakeProcess::Make(executors, segment_bytes);
  process_ = std::move(pair.process);
  pair.parts.load_wait_max = load_wait_max_;
  handle_ =
      std::make_unique<WorkerHandle>(*loop_, std::move(pair.parts), this, [this] { ++kills_; });
}

void WorkerFixture::StartLoaded(uint32_t executors, uint64_t segment_bytes) {
  Start(executors, segment_bytes);
  process_->SayLoaded();
  Turn();
  process_->HearA<channel::LoadRecord>();
  ASSERT_EQ(loads_, 1);
}

void WorkerFixture::Turn() {
  for (int i = 0; i < 4; ++i) loop_->RunOnce(clock_.Now());
}

void WorkerFixture::Advance(absl::Duration by) {
  const absl::Time end = clock_.Now() + by;
  while (clock_.Now() < end) {
    clock_.Advance(std::min(absl::Milliseconds(50), end - clock_.Now()));
    Turn();
  }
}

Asked* WorkerFixture::AskTwice(std::vector<float> values, absl::Time deadline) {
  Asked* asked = asked_.emplace_back(std::make_unique<Asked>()).get();
  asked->values = std::move(values);
  Submit(asked, asked->values, deadline);
  return asked;
}

Asked* WorkerFixture::AskTwiceAt(std::span<const float> values, absl::Time deadline) {
  Asked* asked = asked_.emplace_back(std::make_unique<Asked>()).get();
  Submit(asked, values, deadline);
  return asked;
}

void WorkerFixture::Submit(Asked* asked, std::span<const float> values, absl::Time deadline) {
  const auto rows = static_cast<int64_t>(values.size());
  const tensor::TensorView view{tensor::DType::kFloat, {rows}, std::as_bytes(values)};
  handle_->Submit({.signature = FakeProcess::kTwice, .inputs = {{view}}, .deadline = deadline},
                  [asked](RunOutcome outcome) {
                    ++asked->outcomes;
                    asked->outcome = std::move(outcome);
                  });
}

void WorkerFixture::AnswerLarge(const std::vector<float>& values) {
  const Asked* const asked = AskTwice(values);
  Turn();
  const std::vector<channel::Run> runs = process_->HearRuns();
  ASSERT_EQ(runs.size(), 1u);
  const channel::Completion answer = process_->Answer(runs[0]);
  process_->SayAnswers({answer});
  Turn();
  if (answer.held) {
    process_->SayAnswers({process_->Collected(process_->HearA<channel::CollectRecord>())});
    Turn();
  }
  EXPECT_EQ(FloatsOf(*asked).size(), values.size());
}

Asked* WorkerFixture::AskStrings(const std::vector<std::vector<std::string>>& pieces) {
  Asked* asked = asked_.emplace_back(std::make_unique<Asked>()).get();
  RunSpec spec{.signature = FakeProcess::kStrings, .inputs = {{}}};
  for (const std::vector<std::string>& piece : pieces) {
    uint64_t payload = 0;
    for (const std::string& text : piece) payload += text.size();
    auto& buffer = pieces_.emplace_back(
        std::make_unique<tensor::Buffer>(tensor::PackedStringBytes(piece.size(), payload)));
    tensor::StringWriter writer(buffer->bytes(), piece.size());
    for (const std::string& text : piece) writer.Add(text);
    spec.inputs[0].push_back({tensor::DType::kString,
                              {static_cast<int64_t>(piece.size())},
                              std::as_const(*buffer).bytes()});
  }
  handle_->Submit(std::move(spec), [asked](RunOutcome outcome) {
    ++asked->outcomes;
    asked->outcome = std::move(outcome);
  });
  return asked;
}

std::vector<float> WorkerFixture::FloatsOf(const Asked& asked) {
  EXPECT_EQ(asked.outcomes, 1);
  EXPECT_TRUE(asked.outcome.status.ok()) << asked.outcome.status;
  if (asked.outcome.outputs.size() != 2) return {};
  const std::span<const std::byte> bytes = asked.outcome.outputs[1].bytes;
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<std::string> WorkerFixture::StringsOf(const Asked& asked) {
  EXPECT_EQ(asked.outcomes, 1);
  EXPECT_TRUE(asked.outcome.status.ok()) << asked.outcome.status;
  if (asked.outcome.outputs.size() != 1) return {};
  const tensor::TensorView& output = asked.outcome.outputs[0];
  const auto reader =
      tensor::StringReader::Open(output.bytes, static_cast<uint64_t>(output.shape.elements()));
  EXPECT_TRUE(reader.ok()) << reader.status();
  std::vector<std::string> strings;
  for (uint64_t i = 0; reader.ok() && i < reader->size(); ++i) strings.emplace_back((*reader)[i]);
  return strings;
}

void WorkerFixture::ExpectLost(const Asked& asked, std::string_view words) {
  EXPECT_EQ(asked.outcomes, 1);
  EXPECT_TRUE(asked.outcome.worker_lost);
  EXPECT_EQ(asked.outcome.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(base::Message(asked.outcome.status)),
              ::testing::HasSubstr(std::string(words)));
  EXPECT_EQ(handle_->Free(), 0);
  EXPECT_EQ(handle_->slots_out(), 0u);
}

void WorkerFixture::OnLoaded(WorkerHandle& worker, const engine::ModelInfo& info) {
  EXPECT_EQ(&worker, handle_.get());
  ++loads_;
  info_ = info;
}

void WorkerFixture::OnEnded(WorkerHandle*, End end, const absl::Status& reason) {
  ++ends_;
  end_ = end;
  reason_ = reason;
}

}  // namespace tensord::fleet
