// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/worker/harness.h"

namespace tensord::testing {

// A test with one zygote for the whole suite, and workers of its own.
class ProcessTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!ThePlaces().why.empty()) return;
    // A variable of each kind, for the tests that look what a worker sees.
    absl::StatusOr<std::unique_ptr<TestZygote>> zygote =
        TestZygote::Start({.arguments = {},
                           .environment = {"AWS_SECRET_ACCESS_KEY=tensord_secret_6153",
                                           "OMP_NUM_THREADS=3", "HOME=/root"}});
    ASSERT_TRUE(zygote.ok()) << zygote.status();
    zygote_ = *std::move(zygote);
  }
  static void TearDownTestSuite() { zygote_.reset(); }
  void SetUp() override {
    if (!ThePlaces().why.empty()) GTEST_SKIP() << ThePlaces().why;
    ASSERT_NE(zygote_, nullptr);
  }

  static TestZygote& zygote() { return *zygote_; }
  static std::string PathOf(const std::string& model) { return ThePlaces().models + "/" + model; }
  static channel::LoadRecord LoadOf(const std::string& model) {
    channel::LoadRecord record = TestWorker::LoadOf(PathOf(model));
    record.op_libraries = {PathOf("libtensord_probe_op.so")};
    return record;
  }

  static std::unique_ptr<TestWorker> Fork(uint64_t response_bytes = 4 << 20) {
    absl::StatusOr<std::unique_ptr<TestWorker>> worker = zygote_->Fork(response_bytes);
    if (worker.ok()) return *std::move(worker);
    ADD_FAILURE() << worker.status();
    return nullptr;
  }
  static std::unique_ptr<TestWorker> Load(const channel::LoadRecord& record,
                                          uint64_t response_bytes = 4 << 20) {
    std::unique_ptr<TestWorker> worker = Fork(response_bytes);
    if (worker == nullptr) return nullptr;
    const absl::Status status = worker->Load(record);
    if (status.ok()) return worker;
    ADD_FAILURE() << status << "\n" << worker->Output();
    return nullptr;
  }
  static std::unique_ptr<TestWorker> Load(const std::string& model) { return Load(LoadOf(model)); }

  // The outputs of a run that must succeed.
  static std::vector<tensor::Tensor> Outputs(TestWorker* worker, std::string_view signature,
                                             const std::vector<const tensor::Tensor*>& inputs) {
    absl::StatusOr<TestWorker::Answer> answer = worker->Run(signature, inputs);
    if (answer.ok() && answer->completion.status.ok()) return std::move(answer->outputs);
    ADD_FAILURE() << answer.status() << "; "
                  << (answer.ok() ? answer->completion.status : answer.status());
    return {};
  }
  // The status of a run that the worker must answer.
  static absl::Status StatusOf(TestWorker* worker, std::string_view signature,
                               const std::vector<const tensor::Tensor*>& inputs) {
    absl::StatusOr<TestWorker::Answer> answer = worker->Run(signature, inputs);
    return answer.ok()
               ? answer->completion.status
               : absl::UnknownError(base::Cat("no answer: ", base::Message(answer.status())));
  }
  // What the probe model answers.
  static std::string Probe(TestWorker* worker, const std::string& what,
                           const std::string& argument = "") {
    const tensor::Tensor word = Strings({1}, {what});
    const tensor::Tensor rest = Strings({1}, {argument});
    const std::vector<tensor::Tensor> outputs = Outputs(worker, "serving_default", {&rest, &word});
    return outputs.empty() ? "no answer" : StringValues(outputs[0])[0];
  }

 private:
  static inline std::unique_ptr<TestZygote> zygote_;
};

}  // namespace tensord::testing
