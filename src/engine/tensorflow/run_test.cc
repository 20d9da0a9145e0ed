// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/tensorflow/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "base/limits.h"
#include "base/text.h"
#include "tensor/string_layout.h"

// The runtime's C API, made of a few lines: what it promises about memory, and no more.
namespace tensord::engine {

struct TF_Status {
  int code = 0;
  std::string message;
};
struct TF_Tensor {
  int type = 0;
  std::vector<int64_t> dims;
  void* data = nullptr;
  size_t bytes = 0;
  std::vector<uint64_t> own;  // Memory of TF_AllocateTensor.
  std::function<void()> let_go;
  int references = 1;
};
struct TF_Operation {
  std::string name;
};
struct TF_Graph {
  std::vector<TF_Operation> operations;
};
struct TF_Session {
  std::function<void(TF_Tensor* const*, TF_Tensor**, TF_Status*)> run;
};

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// TF_TString of the fake: a length and a pointer to a copy.
struct Text {
  size_t size;
  char* data;
};

int run_options_seen = 0;
int64_t alive = 0;  // Tensors.

TF_Tensor* NewTensor(int type, const int64_t* dims, int rank, void* data, size_t bytes) {
  ++alive;
  auto* tensor = new TF_Tensor{.type = type,
                               .dims = {dims, dims + rank},
                               .data = data,
                               .bytes = bytes,
                               .own = {},
                               .let_go = {}};
  if (data == nullptr) {
    tensor->own.resize(bytes / 8 + 1);
    tensor->data = tensor->own.data();
  }
  return tensor;
}

void DeleteTensor(TF_Tensor* tensor) {
  if (--tensor->references > 0) return;
  if (tensor->let_go) tensor->let_go();
  if (tensor->type == static_cast<int>(tensor::DType::kString)) {
    auto* texts = static_cast<Text*>(tensor->data);
    for (size_t i = 0; i < tensor->bytes / sizeof(TF_TString); ++i) {
      delete[](reinterpret_cast<Text*>(reinterpret_cast<char*>(texts) + i * sizeof(TF_TString)))
          ->data;
    }
  }
  --alive;
  delete tensor;
}

TensorFlowApi FakeApi() {
  TensorFlowApi api;
  api.TF_Version = [] { return "0.0"; };
  api.TF_NewStatus = [] { return new TF_Status; };
  api.TF_DeleteStatus = [](TF_Status* status) { delete status; };
  api.TF_GetCode = [](const TF_Status* status) { return status->code; };
  api.TF_Message = [](const TF_Status* status) { return status->message.c_str(); };
  api.TF_NewBufferFromString = [](const void*, size_t size) {
    return new TF_Buffer{nullptr, size, nullptr};
  };
  api.TF_DeleteBuffer = [](TF_Buffer* buffer) { delete buffer; };
  api.TF_DeleteGraph = [](TF_Graph*) {};
  api.TF_CloseSession = [](TF_Session*, TF_Status*) {};
  api.TF_DeleteSession = [](TF_Session*, TF_Status*) {};
  api.TF_GraphOperationByName = [](TF_Graph* graph, const char* name) -> TF_Operation* {
    for (TF_Operation& operation : graph->operations) {
      if (operation.name == name) return &operation;
    }
    return nullptr;
  };
  api.TF_OperationNumOutputs = [](TF_Operation*) { return 1; };
  api.TF_NewTensor = [](int type, const int64_t* dims, int rank, void* data, size_t bytes,
                        TF_Deallocator* let_go, void* argument) {
    TF_Tensor* tensor = NewTensor(type, dims, rank, data, bytes);
    tensor->let_go = [=] { let_go(data, bytes, argument); };
    return tensor;
  };
  api.TF_AllocateTensor = [](int type, const int64_t* dims, int rank, size_t bytes) {
    return NewTensor(type, dims, rank, nullptr, bytes);
  };
  api.TF_DeleteTensor = DeleteTensor;
  api.TF_TensorType = [](const TF_Tensor* tensor) { return tensor->type; };
  api.TF_NumDims = [](const TF_Tensor* tensor) { return static_cast<int>(tensor->dims.size()); };
  api.TF_Dim = [](const TF_Tensor* tensor, int i) { return tensor->dims[static_cast<size_t>(i)]; };
  api.TF_TensorByteSize = [](const TF_Tensor* tensor) { return tensor->bytes; };
  api.TF_TensorData = [](const TF_Tensor* tensor) { return tensor->data; };
  api.TF_StringInit = [](TF_TString* string) { std::memset(string, 0, sizeof(*string)); };
  api.TF_StringCopy = [](TF_TString* string, const char* from, size_t size) {
    auto* text = reinterpret_cast<Text*>(string);
    text->size = size;
    text->data = new char[size + 1];
    std::memcpy(text->data, from, size);
  };
  api.TF_StringGetDataPointer = [](const TF_TString* string) -> const char* {
    return reinterpret_cast<const Text*>(string)->data;
  };
  api.TF_StringGetSize = [](const TF_TString* string) {
    return reinterpret_cast<const Text*>(string)->size;
  };
  api.TF_SessionRun = [](TF_Session* session, const TF_Buffer* options, const TF_Output*,
                         TF_Tensor* const* inputs, int, const TF_Output*, TF_Tensor** outputs, int,
                         const TF_Operation* const*, int, TF_Buffer*, TF_Status* status) {
    run_options_seen = options == nullptr ? 0 : static_cast<int>(options->length);
    session->run(inputs, outputs, status);
  };
  return api;
}

// One signature "s" from x to y, both of that dtype.
class RunTest : public ::testing::Test {
 protected:
  void TearDown() override {
    model_.reset();
    EXPECT_EQ(alive, 0) << "tensors were leaked or freed twice";
  }

  void Make(tensor::DType dtype, ModelParts parts = {}) {
    parts.signatures.push_back(OneToOne("s", dtype, "y:0"));
    parts.signatures.push_back(OneToOne("t", dtype, "y:7"));
    SessionHandle session(&api_);
    session.graph = &graph_;
    session.session = &fake_;
    model_ = std::make_unique<TensorFlowModel>(std::move(session), std::move(parts));
  }

  static tensor::Signature OneToOne(const char* name, tensor::DType dtype, const char* fetched) {
    tensor::Signature signature;
    signature.name = name;
    tensor::Endpoint& x = signature.inputs.emplace_back();
    x.name = "x";
    x.tensor_name = "x:0";
    x.dtype = dtype;
    tensor::Endpoint& y = signature.outputs.emplace_back();
    y.name = "y";
    y.tensor_name = fetched;
    y.dtype = dtype;
    return signature;
  }
  static tensor::Tensor Floats(tensor::Shape shape) {
    tensor::Tensor tensor{.dtype = tensor::DType::kFloat,
                          .shape = shape,
                          .buffer = tensor::Buffer(static_cast<size_t>(shape.elements()) * 4)};
    std::ranges::fill(tensor.buffer.bytes(), std::byte{1});
    return tensor;
  }
  std::unique_ptr<Result> Run(const tensor::Tensor& x, int signature = 0) {
    const tensor::TensorView view = x.view();
    return model_->Run(signature, {&view, 1});
  }

  const TensorFlowApi api_ = FakeApi();
  TF_Graph graph_{{{"x"}, {"y"}}};
  TF_Session fake_;
  std::unique_ptr<TensorFlowModel> model_;
};

TEST_F(RunTest, AlignedInputsAreUsedInPlaceAndLetGo) {
  Make(tensor::DType::kFloat);
  const tensor::Tensor x = Floats({2, 3});
  const void* seen = nullptr;
  fake_.run = [&](TF_Tensor* const* inputs, TF_Tensor** outputs, TF_Status*) {
    seen = inputs[0]->data;
    EXPECT_THAT(inputs[0]->dims, ElementsAre(2, 3));
    outputs[0] = NewTensor(1, inputs[0]->dims.data(), 2, nullptr, 24);
  };
  const auto result = Run(x);
  EXPECT_TRUE(result->status().ok());
  EXPECT_EQ(seen, x.buffer.bytes().data());
  EXPECT_FALSE(result->HoldsInputs());
  ASSERT_EQ(result->outputs().size(), 1u);
  EXPECT_EQ(result->outputs()[0].shape, (tensor::Shape{2, 3}));
  EXPECT_EQ(run_options_seen, 11);  // A tag and ten bytes of -1.
}

TEST_F(RunTest, AnInputPassedThroughIsHeldUntilRelease) {
  Make(tensor::DType::kFloat);
  fake_.run = [](TF_Tensor* const* inputs, TF_Tensor** outputs, TF_Status*) {
    ++inputs[0]->references;
    outputs[0] = inputs[0];
  };
  const tensor::Tensor x = Floats({4});
  const auto result = Run(x);
  EXPECT_TRUE(result->HoldsInputs());
  std::vector<std::byte> out(16);
  result->Pack(0, out);
  EXPECT_EQ(out[0], std::byte{1});
  result->Release();
  EXPECT_FALSE(result->HoldsInputs());
}

TEST_F(RunTest, ARuntimeThatKeepsAnInputIsToldAndCopiedForEverAfter) {
  Make(tensor::DType::kFloat);
  const tensor::Tensor x = Floats({4});
  TF_Tensor* kept = nullptr;
  const void* seen = nullptr;
  fake_.run = [&](TF_Tensor* const* inputs, TF_Tensor** outputs, TF_Status*) {
    seen = inputs[0]->data;
    if (kept == nullptr) {
      kept = inputs[0];
      ++kept->references;
    }
    outputs[0] = NewTensor(1, inputs[0]->dims.data(), 1, nullptr, 16);
  };
  auto first = Run(x);
  first->Release();
  EXPECT_TRUE(first->HoldsInputs());
  first.reset();
  const auto second = Run(x);
  EXPECT_NE(seen, x.buffer.bytes().data());
  EXPECT_FALSE(second->HoldsInputs());
  DeleteTensor(kept);  // Long after the run, as a variable's new value would end it.
}

TEST_F(RunTest, AStatefulModelNeverSeesTheClientsMemory) {
  ModelParts parts;
  parts.stateful_reason = "it counts";
  parts.runs_in_caller = false;
  Make(tensor::DType::kFloat, std::move(parts));
  const tensor::Tensor x = Floats({4});
  fake_.run = [&](TF_Tensor* const* inputs, TF_Tensor** outputs, TF_Status*) {
    EXPECT_NE(inputs[0]->data, x.buffer.bytes().data());
    EXPECT_EQ(std::memcmp(inputs[0]->data, x.buffer.bytes().data(), 16), 0);
    outputs[0] = NewTensor(1, inputs[0]->dims.data(), 1, nullptr, 16);
  };
  EXPECT_TRUE(Run(x)->status().ok());
  EXPECT_EQ(run_options_seen, 0);
}

TEST_F(RunTest, StringsAreCopiedInAndPackedOut) {
  Make(tensor::DType::kString);
  fake_.run = [](TF_Tensor* const* inputs, TF_Tensor** outputs, TF_Status*) {
    ++inputs[0]->references;
    outputs[0] = inputs[0];
  };
  tensor::Tensor x{.dtype = tensor::DType::kString,
                   .shape = {2},
                   .buffer = tensor::Buffer(tensor::PackedStringBytes(2, 5))};
  tensor::StringWriter writer(x.buffer.bytes(), 2);
  writer.Add("hello");
  writer.Add("");
  const auto result = Run(x);
  ASSERT_TRUE(result->status().ok()) << result->status();
  EXPECT_FALSE(result->HoldsInputs());
  std::vector<std::byte> out(result->outputs()[0].bytes);
  result->Pack(0, out);
  ASSERT_EQ(out.size(), x.buffer.size());
  EXPECT_EQ(std::memcmp(out.data(), x.buffer.bytes().data(), out.size()), 0);
}

TEST_F(RunTest, BytesThatDoNotFitNeverReachTheRuntime) {
  Make(tensor::DType::kFloat);
  fake_.run = [](TF_Tensor* const*, TF_Tensor**, TF_Status*) { FAIL() << "it ran"; };
  tensor::Tensor x = Floats({4});
  x.shape = {5};
  EXPECT_TRUE(absl::IsInvalidArgument(Run(x)->status()));
  x.dtype = tensor::DType::kVariant;
  EXPECT_TRUE(absl::IsInvalidArgument(Run(x)->status()));
  x.dtype = tensor::DType::kString;  // Ones are no offsets.
  EXPECT_TRUE(absl::IsInvalidArgument(Run(x)->status()));
}

TEST_F(RunTest, TheRuntimesStatusComesWithItsCode) {
  Make(tensor::DType::kFloat);
  fake_.run = [](TF_Tensor* const*, TF_Tensor**, TF_Status* status) { *status = {8, "too big"}; };
  const auto result = Run(Floats({1}));
  EXPECT_TRUE(absl::IsResourceExhausted(result->status()));
  EXPECT_EQ(base::Message(result->status()), "too big");
  EXPECT_TRUE(result->outputs().empty());
}

TEST_F(RunTest, OutputsThatCannotTravelStayAndFailNoRun) {
  Make(tensor::DType::kFloat);
  std::vector<int64_t> dims(9, 1);
  int dtype = 1;
  fake_.run = [&](TF_Tensor* const*, TF_Tensor** outputs, TF_Status*) {
    outputs[0] = NewTensor(dtype, dims.data(), static_cast<int>(dims.size()), nullptr, 4);
  };
  const auto expect_that_it_stays = [&] {
    const auto result = Run(Floats({1}));
    ASSERT_TRUE(result->status().ok()) << result->status();
    ASSERT_EQ(result->outputs().size(), 1u);
    EXPECT_EQ(result->outputs()[0].dtype, tensor::DType::kInvalid);
    EXPECT_EQ(result->outputs()[0].bytes, 0u);
    result->Pack(0, {});
  };
  expect_that_it_stays();
  dims = {1};
  dtype = static_cast<int>(tensor::DType::kResource);
  expect_that_it_stays();
  dtype = static_cast<int>(tensor::DType::kInt32);  // Not what the signature says.
  expect_that_it_stays();
  dtype = 1;
  dims = {2};  // Four bytes are not two floats.
  const absl::Status short_one = Run(Floats({1}))->status();
  EXPECT_TRUE(absl::IsInternal(short_one));
  EXPECT_THAT(std::string(base::Message(short_one)), HasSubstr("output 'y': the runtime gave 4"));
}

TEST_F(RunTest, ASignatureThatNamesNoTensorOfTheGraphSaysSo) {
  Make(tensor::DType::kFloat);
  const absl::Status status = Run(Floats({1}), 1)->status();
  EXPECT_THAT(std::string(base::Message(status)), HasSubstr("no tensor 'y:7'"));
}

TEST_F(RunTest, SignaturesTogetherAreOneRunWithAllTheirOutputs) {
  Make(tensor::DType::kFloat);
  int runs = 0;
  fake_.run = [&](TF_Tensor* const* inputs, TF_Tensor** outputs, TF_Status*) {
    ++runs;
    for (int i = 0; i < 2; ++i) outputs[i] = NewTensor(1, inputs[0]->dims.data(), 1, nullptr, 16);
  };
  const tensor::Tensor x = Floats({4});
  const tensor::TensorView view = x.view();
  const int signatures[] = {0, 0};
  const auto result = model_->RunTogether(signatures, {&view, 1});
  ASSERT_TRUE(result->status().ok()) << result->status();
  EXPECT_EQ(result->outputs().size(), 2u);
  EXPECT_EQ(runs, 1);
  const int broken[] = {0, 1};
  EXPECT_THAT(std::string(base::Message(model_->RunTogether(broken, {&view, 1})->status())),
              HasSubstr("no tensor 'y:7'"));
}

TEST_F(RunTest, SetsOfSignaturesBeyondTheLimitRunOneByOne) {
  Make(tensor::DType::kFloat);
  int runs = 0;
  size_t fetched = 0;
  fake_.run = [&](TF_Tensor* const* inputs, TF_Tensor** outputs, TF_Status*) {
    ++runs;
    for (size_t i = 0; i < fetched; ++i) {
      outputs[i] = NewTensor(1, inputs[0]->dims.data(), 1, nullptr, 16);
    }
  };
  const tensor::Tensor x = Floats({4});
  const tensor::TensorView view = x.view();
  for (fetched = 1; fetched <= limits::kFetchListsMax; ++fetched) {
    const std::vector<int> signatures(fetched, 0);
    ASSERT_TRUE(model_->RunTogether(signatures, {&view, 1})->status().ok());
  }
  EXPECT_EQ(runs, static_cast<int>(limits::kFetchListsMax));
  runs = 0;
  fetched = 1;
  const std::vector<int> one_more(limits::kFetchListsMax + 1, 0);
  const auto result = model_->RunTogether(one_more, {&view, 1});
  ASSERT_TRUE(result->status().ok()) << result->status();
  EXPECT_EQ(result->outputs().size(), one_more.size());
  EXPECT_EQ(runs, static_cast<int>(one_more.size()));
}

TEST_F(RunTest, TensorsWithoutElementsHaveAPlaceAllTheSame) {
  Make(tensor::DType::kFloat);
  fake_.run = [](TF_Tensor* const* inputs, TF_Tensor** outputs, TF_Status*) {
    EXPECT_NE(inputs[0]->data, nullptr);
    EXPECT_EQ(inputs[0]->bytes, 0u);
    outputs[0] = NewTensor(1, inputs[0]->dims.data(), 2, nullptr, 0);
  };
  const auto result = Run(Floats({0, 3}));
  ASSERT_TRUE(result->status().ok()) << result->status();
  EXPECT_EQ(result->outputs()[0].bytes, 0u);
  result->Pack(0, {});
}

}  // namespace
}  // namespace tensord::engine
