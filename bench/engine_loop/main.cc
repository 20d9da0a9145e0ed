// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// The bare engine: one process that loads a model and runs it in a loop, with no server around it.
// What a server costs is what it takes beyond this.
//
//   engine_loop RUNTIME_DIR MODEL_DIR ROWS THREADS SECONDS [OP_THREADS]
//
// prints one JSON object: runs a second, and CPU and wall microseconds a run. THREADS loops run at
// once, each op on OP_THREADS threads (THREADS when not given). Inputs are 0.5 (or zero bytes),
// open dims but the first are 1.

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/protobuf_wire.h"
#include "base/text.h"
#include "engine/tensorflow/load.h"
#include "tensor/string_layout.h"

namespace tensord {
namespace {

tensor::Tensor MakeInput(const tensor::Endpoint& endpoint, int64_t rows) {
  std::vector<int64_t> dims = endpoint.shape.dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) dims[i] = i == 0 ? rows : 1;
  }
  tensor::Tensor input;
  input.dtype = endpoint.dtype;
  input.shape = *tensor::Shape::Make(dims);
  const auto elements = static_cast<uint64_t>(input.shape.elements());
  const bool strings = input.dtype == tensor::DType::kString;
  input.buffer = tensor::Buffer(strings ? tensor::PackedStringBytes(elements, 0)
                                        : *tensor::FixedBytes(input.dtype, input.shape));
  std::memset(input.buffer.bytes().data(), 0, input.buffer.size());
  if (input.dtype == tensor::DType::kFloat) {
    const float half = 0.5f;
    for (uint64_t i = 0; i < elements; ++i) {
      std::memcpy(input.buffer.bytes().data() + i * sizeof(half), &half, sizeof(half));
    }
  }
  return input;
}

double CpuMicroseconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return absl::ToDoubleMicroseconds(absl::DurationFromTimeval(usage.ru_utime) +
                                    absl::DurationFromTimeval(usage.ru_stime));
}

struct Counts {
  uint64_t runs = 0;
  double cpu_microseconds = 0;
  double wall_microseconds = 0;
};

Counts RunFor(engine::Model* model, int signature, const std::vector<tensor::TensorView>& inputs,
              int threads, absl::Duration duration) {
  std::atomic<uint64_t> runs{0};
  const absl::Time begun = base::MonotonicClock().Now();
  const double cpu = CpuMicroseconds();
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i) {
    pool.emplace_back([&] {
      while (base::MonotonicClock().Now() < begun + duration) {
        if (!model->Run(signature, inputs)->status().ok()) std::abort();
        runs.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& thread : pool) thread.join();
  return {runs.load(), CpuMicroseconds() - cpu,
          absl::ToDoubleMicroseconds(base::MonotonicClock().Now() - begun)};
}

int Main(int argc, char** argv) {
  const auto runtime = engine::Runtime::Open(argv[1], engine::SymbolScope::kLocal);
  if (!runtime.ok()) {
    std::fprintf(stderr, "%s\n", std::string(base::Message(runtime.status())).c_str());
    return 1;
  }
  engine::TensorFlowEngine tensorflow(&*runtime);
  engine::LoadOptions options;
  options.directory = argv[2];
  options.tags = {"serve"};
  const int threads = std::atoi(argv[4]);
  // ConfigProto: intra_op_parallelism_threads = 2, inter_op_parallelism_threads = 5.
  const int op_threads = argc > 6 ? std::atoi(argv[6]) : threads;
  base::AppendVarintField(2, static_cast<uint64_t>(op_threads), &options.session_config);
  base::AppendVarintField(5, static_cast<uint64_t>(threads), &options.session_config);
  const auto model = tensorflow.Load(options);
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", std::string(base::Message(model.status())).c_str());
    return 1;
  }
  const int signature = tensor::SignatureIndex((*model)->signatures(), "serving_default");
  std::vector<tensor::Tensor> owned;
  std::vector<tensor::TensorView> inputs;
  for (const tensor::Endpoint& endpoint :
       (*model)->signatures()[static_cast<size_t>(signature)].inputs) {
    owned.push_back(MakeInput(endpoint, std::atoll(argv[3])));
    inputs.push_back(owned.back().view());
  }
  RunFor(model->get(), signature, inputs, threads, absl::Seconds(1));
  const Counts counts =
      RunFor(model->get(), signature, inputs, threads, absl::Seconds(std::atof(argv[5])));
  const auto runs = static_cast<double>(counts.runs);
  std::printf("{\"runs_per_second\": %.1f, \"cpu_us_per_run\": %.3f, \"wall_us_per_run\": %.3f}\n",
              runs * 1e6 / counts.wall_microseconds, counts.cpu_microseconds / runs,
              counts.wall_microseconds * threads / runs);
  return 0;
}

}  // namespace
}  // namespace tensord

int main(int argc, char** argv) {
  if (argc != 6 && argc != 7) {
    std::fprintf(stderr,
                 "usage: engine_loop RUNTIME_DIR MODEL_DIR ROWS THREADS SECONDS [OP_THREADS]\n");
    return 2;
  }
  const int code = tensord::Main(argc, argv);
  std::fflush(nullptr);
  _exit(code);  // The runtime's own static destructors are not worth waiting for.
}
