// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/tensorflow/run.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/limits.h"
#include "base/protobuf_wire.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "engine/tensorflow/feed.h"
#include "engine/tensorflow/missing_op.h"
#include "tensor/string_layout.h"

namespace tensord::engine {
namespace {

// "name:1" or "name", as in TensorInfo.name.
absl::StatusOr<TF_Output> FindTensor(const TensorFlowApi& api, TF_Graph* graph,
                                     const std::string& tensor_name) {
  const size_t colon = tensor_name.rfind(':');
  int index = 0;
  if (colon != std::string::npos) {
    const char* end = tensor_name.data() + tensor_name.size();
    const auto parsed = std::from_chars(tensor_name.data() + colon + 1, end, index);
    if (parsed.ec != std::errc() || parsed.ptr != end) index = -1;
  }
  TF_Operation* op = api.TF_GraphOperationByName(graph, tensor_name.substr(0, colon).c_str());
  if (op == nullptr || index < 0 || index >= api.TF_OperationNumOutputs(op)) {
    return absl::InvalidArgumentError(
        base::Cat("the model's graph has no tensor '", tensor_name, "'"));
  }
  return TF_Output{.oper = op, .index = index};
}

absl::Status BindInto(const SessionHandle& session, const tensor::Signature& signature,
                      BoundSignature* bound) {
  for (const tensor::Endpoint& input : signature.inputs) {
    if (!input.dense) {
      return absl::UnimplementedError(base::Cat("input '", input.name, "' of signature '",
                                                signature.name,
                                                "' is no tensor that a request can carry"));
    }
    ASSIGN_OR_RETURN(TF_Output feed, FindTensor(*session.api, session.graph, input.tensor_name));
    bound->feeds.push_back(feed);
  }
  for (const tensor::Endpoint& output : signature.outputs) {
    if (!output.dense) continue;
    ASSIGN_OR_RETURN(TF_Output fetch, FindTensor(*session.api, session.graph, output.tensor_name));
    bound->fetches.push_back(fetch);
    bound->fetched.push_back({output.name, output.dtype});
  }
  if (bound->fetches.empty()) {
    return absl::InvalidArgumentError(
        base::Cat("signature '", signature.name, "' has no output that an answer can carry"));
  }
  return absl::OkStatus();
}

std::vector<BoundSignature> BindAll(const SessionHandle& session,
                                    const tensor::SignatureList& signatures) {
  std::vector<BoundSignature> bound(signatures.size());
  for (size_t i = 0; i < signatures.size(); ++i) {
    bound[i].broken = BindInto(session, signatures[i], &bound[i]);
  }
  return bound;
}

TF_Buffer* MakeRunOptions(const TensorFlowApi& api, bool runs_in_caller) {
  if (!runs_in_caller) return nullptr;
  std::string bytes;  // tensorflow.RunOptions.inter_op_thread_pool = 3: -1 is the calling thread.
  base::AppendVarintField(3, static_cast<uint64_t>(int64_t{-1}), &bytes);
  return api.TF_NewBufferFromString(bytes.data(), bytes.size());
}

uint64_t StringPayload(const TensorFlowApi& api, const TF_TString* strings, uint64_t elements) {
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < elements; ++i) bytes += api.TF_StringGetSize(strings + i);
  return bytes;
}

// An output of another type than the signature says, or of too many dims, stays here: its info is
// empty. Whether anybody wants it, the front knows.
absl::StatusOr<OutputInfo> Inspect(const TensorFlowApi& api, tensor::DType declared,
                                   const TF_Tensor* tensor) {
  const auto dtype = static_cast<tensor::DType>(api.TF_TensorType(tensor));
  const int rank = api.TF_NumDims(tensor);
  if (dtype != declared || rank > limits::kRankMax) return OutputInfo{};
  OutputInfo info;
  info.dtype = dtype;
  std::vector<int64_t> dims;
  dims.reserve(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) dims.push_back(api.TF_Dim(tensor, i));
  ASSIGN_OR_RETURN(info.shape, tensor::Shape::Make(dims));
  if (info.dtype == tensor::DType::kString) {
    const auto elements = static_cast<uint64_t>(info.shape.elements());
    const auto* strings = static_cast<const TF_TString*>(api.TF_TensorData(tensor));
    info.bytes = tensor::PackedStringBytes(elements, StringPayload(api, strings, elements));
  } else {
    ASSIGN_OR_RETURN(info.bytes, tensor::FixedBytes(info.dtype, info.shape));
    if (info.bytes != api.TF_TensorByteSize(tensor)) {
      return absl::InternalError(base::Cat("the runtime gave ", api.TF_TensorByteSize(tensor),
                                           " bytes for a ", tensor::DTypeName(info.dtype),
                                           " tensor of shape ", info.shape.ToString()));
    }
  }
  return info;
}

class TensorFlowResult : public Result {
 public:
  TensorFlowResult(const TensorFlowApi* api, std::atomic<bool>* kept)
      : api_(api), kept_(kept), hold_(InputHold::Make()) {}
  ~TensorFlowResult() override {
    Release();
    hold_->Drop();
  }

  const absl::Status& status() const override { return status_; }
  std::span<const OutputInfo> outputs() const override { return infos_; }
  bool HoldsInputs() const override { return hold_->held(); }

  void Pack(size_t i, std::span<std::byte> out) const override {
    const void* data = api_->TF_TensorData(tensors_[i]);
    if (infos_[i].dtype != tensor::DType::kString) {
      if (!out.empty()) std::memcpy(out.data(), data, out.size());
      return;
    }
    const auto elements = static_cast<uint64_t>(infos_[i].shape.elements());
    const auto* strings = static_cast<const TF_TString*>(data);
    tensor::StringWriter writer(out, elements);
    for (uint64_t n = 0; n < elements; ++n) {
      writer.Add({api_->TF_StringGetDataPointer(strings + n), api_->TF_StringGetSize(strings + n)});
    }
  }

  void Release() override {
    for (TF_Tensor* tensor : tensors_) {
      if (tensor != nullptr) api_->TF_DeleteTensor(tensor);
    }
    tensors_.clear();
    if (hold_->held()) kept_->store(true, std::memory_order_relaxed);
  }

  // Makes the feeds, runs, and looks at what came out, which goes behind what is there already.
  absl::Status Run(const SessionHandle& session, const TF_Buffer* run_options,
                   const BoundSignature& bound, std::span<const tensor::TensorView> inputs) {
    RETURN_IF_ERROR(bound.broken);
    Feeds feeds(api_);
    const bool copies = kept_->load(std::memory_order_relaxed);
    for (const tensor::TensorView& input : inputs) {
      RETURN_IF_ERROR(feeds.Add(input, copies, hold_));
    }
    const size_t before = tensors_.size();
    tensors_.resize(before + bound.fetches.size());
    const StatusPointer status = NewStatus(*api_);
    api_->TF_SessionRun(session.session, run_options, bound.feeds.data(), feeds.data(),
                        static_cast<int>(bound.feeds.size()), bound.fetches.data(),
                        tensors_.data() + before, static_cast<int>(bound.fetches.size()), nullptr,
                        0, nullptr, status.get());
    RETURN_IF_ERROR(ExplainMissingOp(ToStatus(*api_, status.get())));
    for (size_t i = 0; i < bound.fetches.size(); ++i) {
      const BoundSignature::Fetched& fetched = bound.fetched[i];
      absl::StatusOr<OutputInfo> info = Inspect(*api_, fetched.dtype, tensors_[before + i]);
      if (!info.ok()) {
        return base::WithContext(info.status(), base::Cat("output '", fetched.name, "': "));
      }
      infos_.push_back(*info);
    }
    return absl::OkStatus();
  }

  void set_status(absl::Status status) {
    status_ = std::move(status);
    if (!status_.ok()) infos_.clear();
  }

 private:
  const TensorFlowApi* const api_;
  std::atomic<bool>* const kept_;
  InputHold* const hold_;
  absl::Status status_;
  std::vector<TF_Tensor*> tensors_;
  std::vector<OutputInfo> infos_;
};

}  // namespace

SessionHandle::~SessionHandle() {
  if (session != nullptr) {
    const StatusPointer status = NewStatus(*api);
    api->TF_CloseSession(session, status.get());
    api->TF_DeleteSession(session, status.get());
  }
  if (graph != nullptr) api->TF_DeleteGraph(graph);
}

BoundSession::BoundSession(SessionHandle opened, const tensor::SignatureList& signatures)
    : handle(std::move(opened)), bound(BindAll(handle, signatures)) {}

TensorFlowModel::TensorFlowModel(SessionHandle session, ModelParts parts)
    : parts_(std::move(parts)),
      wide_(std::move(session), parts_.signatures),
      narrow_warm_(parts_.signatures.size(), false),
      run_options_(MakeRunOptions(*wide_.handle.api, parts_.runs_in_caller)),
      copies_inputs_(!parts_.stateful_reason.empty()) {}

TensorFlowModel::~TensorFlowModel() {
  if (run_options_ != nullptr) wide_.handle.api->TF_DeleteBuffer(run_options_);
}

void TensorFlowModel::Describe(ModelInfo* info) const {
  info->signature_def_map = parts_.signature_def_map;
  info->runtime_version = wide_.handle.api->TF_Version();
  info->devices = parts_.devices;
  info->warnings = parts_.warnings;
  info->stateful_reason = parts_.stateful_reason;
  info->alone = parts_.alone;
}

absl::Status TensorFlowModel::OpenNarrow(const std::string& more_config) {
  SessionHandle session(wide_.handle.api);
  RETURN_IF_ERROR(parts_.open(more_config, &session));
  narrow_ = std::make_unique<const BoundSession>(std::move(session), parts_.signatures);
  wide_thread_ = std::make_unique<WideThread>();
  return absl::OkStatus();
}

std::unique_ptr<Result> TensorFlowModel::WarmNarrow(int signature,
                                                    std::span<const tensor::TensorView> inputs) {
  std::unique_ptr<Result> result = RunIn(*narrow_, signature, inputs);
  if (result->status().ok()) narrow_warm_[static_cast<size_t>(signature)] = true;
  return result;
}

std::unique_ptr<Result> TensorFlowModel::Run(int signature,
                                             std::span<const tensor::TensorView> inputs) {
  const bool alone = running_.fetch_add(1, std::memory_order_relaxed) == 0;
  std::unique_ptr<Result> result;
  if (narrow_ == nullptr || !narrow_warm_[static_cast<size_t>(signature)]) {
    result = RunIn(wide_, signature, inputs);
  } else if (alone) {
    wide_thread_->Run([&] { result = RunIn(wide_, signature, inputs); });
  } else {
    result = RunIn(*narrow_, signature, inputs);
  }
  running_.fetch_sub(1, std::memory_order_relaxed);
  return result;
}

std::unique_ptr<Result> TensorFlowModel::RunIn(const BoundSession& session, int signature,
                                               std::span<const tensor::TensorView> inputs) {
  auto result = std::make_unique<TensorFlowResult>(session.handle.api, &copies_inputs_);
  const BoundSignature& bound = session.bound[static_cast<size_t>(signature)];
  result->set_status(result->Run(session.handle, run_options_, bound, inputs));
  return result;
}

// Each new set makes the session prune, optimise and compile a graph that it then keeps.
bool TensorFlowModel::MayFetchTogether(std::vector<int> signatures) {
  std::ranges::sort(signatures);
  const base::MutexLock lock(&mu_);
  if (together_.contains(signatures)) return true;
  if (together_.size() == limits::kFetchListsMax) return false;
  together_.insert(std::move(signatures));
  return true;
}

std::unique_ptr<Result> TensorFlowModel::RunTogether(std::span<const int> signatures,
                                                     std::span<const tensor::TensorView> inputs) {
  auto result = std::make_unique<TensorFlowResult>(wide_.handle.api, &copies_inputs_);
  if (!MayFetchTogether({signatures.begin(), signatures.end()})) {
    absl::Status status;
    for (size_t i = 0; i < signatures.size() && status.ok(); ++i) {
      status = result->Run(wide_.handle, run_options_,
                           wide_.bound[static_cast<size_t>(signatures[i])], inputs);
    }
    result->set_status(std::move(status));
    return result;
  }
  BoundSignature all = wide_.bound[static_cast<size_t>(signatures.front())];
  for (const int signature : signatures.subspan(1)) {
    const BoundSignature& more = wide_.bound[static_cast<size_t>(signature)];
    if (all.broken.ok()) all.broken = more.broken;
    all.fetches.insert(all.fetches.end(), more.fetches.begin(), more.fetches.end());
    all.fetched.insert(all.fetched.end(), more.fetched.begin(), more.fetched.end());
  }
  result->set_status(result->Run(wide_.handle, run_options_, all, inputs));
  return result;
}

}  // namespace tensord::engine
