// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/runner.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "base/text.h"

namespace tensord::worker {
namespace {

constexpr uint64_t kAlignment = 64;  // Of every tensor in a segment.

// Where each output lies in a region that starts at an aligned place, and what they need in all.
struct Layout {
  std::vector<uint64_t> offsets;
  uint64_t bytes = 0;
};

Layout LayOut(std::span<const engine::OutputInfo> outputs) {
  Layout layout;
  for (const engine::OutputInfo& output : outputs) {
    const uint64_t offset = (layout.bytes + kAlignment - 1) / kAlignment * kAlignment;
    layout.offsets.push_back(offset);
    layout.bytes = offset + output.bytes;
  }
  return layout;
}

bool SameFeeds(const std::vector<tensor::Endpoint>& a, const std::vector<tensor::Endpoint>& b) {
  return std::ranges::equal(a, b, [](const tensor::Endpoint& x, const tensor::Endpoint& y) {
    return x.tensor_name == y.tensor_name;
  });
}

channel::TensorDescriptor Describe(const engine::OutputInfo& output, uint64_t offset) {
  return {.dtype = output.dtype, .shape = output.shape, .offset = offset, .bytes = output.bytes};
}

}  // namespace

Runner::Runner(engine::Model* model, std::shared_ptr<const Segments> segments)
    : model_(model), clock_(base::MonotonicClock()), segments_(std::move(segments)) {}

void Runner::ReplaceSegments(std::shared_ptr<const Segments> segments) {
  const base::MutexLock lock(&mu_);
  segments_ = std::move(segments);
}

std::shared_ptr<const Segments> Runner::segments() const {
  const base::MutexLock lock(&mu_);
  return segments_;
}

// Each signature of the run exists and takes the inputs of the first.
absl::Status Runner::CheckSignatures(const channel::Run& run) const {
  const tensor::SignatureList& signatures = model_->signatures();
  const auto missing = [](uint32_t number) {
    return absl::InvalidArgumentError(base::Cat("there is no signature number ", number));
  };
  if (run.signature >= signatures.size()) return missing(run.signature);
  const tensor::Signature& first = signatures[run.signature];
  for (const uint32_t more : run.more_signatures) {
    if (more >= signatures.size()) return missing(more);
    if (!SameFeeds(first.inputs, signatures[more].inputs)) {
      return absl::InvalidArgumentError(base::Cat("signatures '", first.name, "' and '",
                                                  signatures[more].name,
                                                  "' do not take the same inputs"));
    }
  }
  return absl::OkStatus();
}

std::unique_ptr<engine::Result> Runner::RunModel(const channel::Run& run,
                                                 std::span<const tensor::TensorView> inputs) const {
  const int first = static_cast<int>(run.signature);
  if (run.more_signatures.empty()) return model_->Run(first, inputs);
  std::vector<int> all = {first};
  for (const uint32_t more : run.more_signatures) all.push_back(static_cast<int>(more));
  return model_->RunTogether(all, inputs);
}

absl::StatusOr<std::vector<tensor::TensorView>> Runner::ReadInputs(
    const channel::Run& run, const channel::MappedSegment& segment) const {
  const tensor::Signature& signature = model_->signatures()[run.signature];
  if (run.inputs.size() != signature.inputs.size()) {
    return absl::InvalidArgumentError(base::Cat("signature '", signature.name, "' has ",
                                                signature.inputs.size(), " inputs; ",
                                                run.inputs.size(), " came"));
  }
  std::vector<tensor::TensorView> inputs;
  inputs.reserve(run.inputs.size());
  for (const channel::TensorDescriptor& input : run.inputs) {
    ASSIGN_OR_RETURN(const std::span<const std::byte> bytes,
                     segment.Read(input.offset, input.bytes));
    inputs.push_back({.dtype = input.dtype, .shape = input.shape, .bytes = bytes});
  }
  return inputs;
}

channel::Completion Runner::Make(const channel::Run& run, OwnSegments* own) {
  channel::Completion completion;
  completion.id = run.id;
  completion.status = CheckSignatures(run);
  if (!completion.status.ok()) return completion;
  const std::shared_ptr<const Segments> standard = segments();
  const absl::StatusOr<std::vector<tensor::TensorView>> inputs =
      ReadInputs(run, own->request != nullptr ? *own->request : standard->request);
  const absl::StatusOr<std::span<std::byte>> region =
      (own->response != nullptr ? *own->response : standard->response)
          .Write(run.response_offset, run.response_bytes);
  completion.status = inputs.ok() ? region.status() : inputs.status();
  if (!completion.status.ok()) return completion;

  const absl::Time begun = clock_.Now();
  std::unique_ptr<engine::Result> result = RunModel(run, *inputs);
  completion.run_nanoseconds =
      static_cast<uint64_t>(absl::ToInt64Nanoseconds(clock_.Now() - begun));
  completion.status = result->status();
  Place(run, *region, std::move(result), &completion);
  if (completion.inputs_retained) {
    const base::MutexLock lock(&mu_);
    if (own->request != nullptr) {
      kept_.push_back(std::move(own->request));
    } else if (kept_.empty() || kept_.back() != standard) {
      kept_.push_back(standard);
    }
  }
  return completion;
}

void Runner::Place(const channel::Run& run, std::span<std::byte> region,
                   std::unique_ptr<engine::Result> result, channel::Completion* completion) {
  const std::span<const engine::OutputInfo> outputs = result->outputs();
  const Layout layout = LayOut(outputs);
  if (layout.bytes > region.size()) {
    completion->held = true;
    completion->held_bytes = layout.bytes;
    return Hold(std::move(result), completion);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    result->Pack(i, region.subspan(layout.offsets[i], outputs[i].bytes));
    completion->outputs.push_back(Describe(outputs[i], run.response_offset + layout.offsets[i]));
  }
  result->Release();
  completion->inputs_retained = result->HoldsInputs();
}

void Runner::Hold(std::unique_ptr<engine::Result> result, channel::Completion* completion) {
  Held held;
  held.outputs.assign(result->outputs().begin(), result->outputs().end());
  if (result->HoldsInputs()) {
    // An output may be an input passed through. Its memory is the front's slot, which must not stay
    // in use until the front asks for the outputs.
    for (size_t i = 0; i < held.outputs.size(); ++i) {
      held.copies.emplace_back(held.outputs[i].bytes);
      result->Pack(i, held.copies.back().bytes());
    }
    result->Release();
    completion->inputs_retained = result->HoldsInputs();
  } else {
    held.result = std::move(result);
  }
  const base::MutexLock lock(&mu_);
  held_.insert_or_assign(completion->id, std::move(held));
}

std::optional<channel::Completion> Runner::Collect(const channel::CollectRecord& record,
                                                   const channel::MappedSegment* segment) {
  std::map<uint64_t, Held>::node_type node;
  {
    const base::MutexLock lock(&mu_);
    node = held_.extract(record.id);
  }
  if (segment == nullptr) return std::nullopt;
  channel::Completion completion;
  completion.id = record.id;
  if (node.empty()) {
    completion.status = absl::InternalError(base::Cat("no outputs of run ", record.id, " wait"));
    return completion;
  }
  const Held& held = node.mapped();
  const Layout layout = LayOut(held.outputs);
  const absl::StatusOr<std::span<std::byte>> region = segment->Write(0, layout.bytes);
  completion.status = region.status();
  if (!region.ok()) return completion;
  for (size_t i = 0; i < held.outputs.size(); ++i) {
    const std::span<std::byte> out = region->subspan(layout.offsets[i], held.outputs[i].bytes);
    if (held.result != nullptr) {
      held.result->Pack(i, out);
    } else {
      std::ranges::copy(held.copies[i].bytes(), out.begin());
    }
    completion.outputs.push_back(Describe(held.outputs[i], layout.offsets[i]));
  }
  return completion;
}

}  // namespace tensord::worker
