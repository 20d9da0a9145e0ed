// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "channel/record.h"
#include "channel/record_format.h"
#include "tensor/string_layout.h"

namespace tensord::channel {
namespace {

// Reads fields in order. The first that is wrong makes ok() false for good and every later value
// zero, so a decoder may read a whole item and look once.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  bool ok() const { return error_.empty(); }
  bool at_end() const { return left_.empty(); }
  void Fail(std::string_view why) {
    if (error_.empty()) error_ = why;
    left_ = {};
  }
  absl::Status error() const {
    return absl::InvalidArgumentError(base::Cat("malformed record: ", error_));
  }

  template <typename Number>
  Number Get() {
    Number value{};
    if (left_.size() < sizeof(Number)) {
      Fail("it is cut short");
      return value;
    }
    std::memcpy(&value, left_.data(), sizeof(Number));
    left_.remove_prefix(sizeof(Number));
    return value;
  }
  template <typename Number = uint8_t>
  bool Bool() {
    const auto value = Get<Number>();
    if (value > 1) Fail("a flag is neither 0 nor 1");
    return value == 1;
  }
  // A number of items that follow, each at least `item_bytes_min` long: a count that the record
  // cannot hold is refused before anything is allocated for it.
  size_t Count(size_t max, size_t item_bytes_min) {
    const size_t count = Get<uint32_t>();
    if (count > max || count > left_.size() / item_bytes_min) {
      Fail("a count is larger than what may follow");
      return 0;
    }
    return count;
  }
  std::string Text(size_t max) {
    const size_t size = Count(max, 1);
    std::string text(left_.substr(0, size));
    left_.remove_prefix(size);
    return text;
  }
  std::vector<std::string> Texts(size_t text_max) {
    std::vector<std::string> texts(Count(limits::kLoadListMax, sizeof(uint32_t)));
    for (std::string& text : texts) text = Text(text_max);
    return texts;
  }

 private:
  std::string_view left_;
  std::string error_;
};

void CheckBytes(Reader& in, const TensorDescriptor& tensor) {
  if (tensor.offset % kOffsetAlignment != 0) return in.Fail("an offset is not a multiple of 64");
  if (tensor.bytes > limits::kTensorBytesMax) return in.Fail("a tensor is too large");
  if (tensor.offset > UINT64_MAX - tensor.bytes) return in.Fail("a tensor wraps around");
  if (tensor.dtype == tensor::DType::kString) {
    const auto elements = static_cast<uint64_t>(tensor.shape.elements());
    if (tensor.bytes < tensor::PackedStringBytes(elements, 0)) {
      in.Fail("a string tensor has no room for its offsets");
    }
    return;
  }
  const absl::StatusOr<uint64_t> bytes = tensor::FixedBytes(tensor.dtype, tensor.shape);
  if (!bytes.ok() || *bytes != tensor.bytes) in.Fail("a tensor's bytes and shape disagree");
}

TensorDescriptor TakeDescriptor(Reader& in, bool may_stay) {
  TensorDescriptor tensor;
  const auto dtype = in.Get<uint32_t>();
  const auto rank = in.Get<uint32_t>();
  tensor.offset = in.Get<uint64_t>();
  tensor.bytes = in.Get<uint64_t>();
  // An output that the worker keeps.
  if (may_stay && dtype == 0 && rank == 0 && tensor.bytes == 0) return tensor;
  if (dtype > INT32_MAX || !tensor::IsServable(static_cast<tensor::DType>(dtype))) {
    in.Fail("a dtype is none that can be sent");
    return tensor;
  }
  if (rank > limits::kRankMax) {
    in.Fail("a rank is too high");
    return tensor;
  }
  tensor.dtype = static_cast<tensor::DType>(dtype);
  std::array<int64_t, limits::kRankMax> dims{};
  for (size_t i = 0; i < rank; ++i) dims[i] = in.Get<int64_t>();
  const absl::StatusOr<tensor::Shape> shape = tensor::Shape::Make({dims.data(), rank});
  if (!shape.ok()) {
    in.Fail(base::Message(shape.status()));
    return tensor;
  }
  tensor.shape = *shape;
  CheckBytes(in, tensor);
  return tensor;
}

std::vector<TensorDescriptor> TakeDescriptors(Reader& in, bool may_stay) {
  const size_t count = in.Count(limits::kInputsMax, kDescriptorBytes);
  std::vector<TensorDescriptor> tensors;
  tensors.reserve(count);
  for (size_t i = 0; i < count && in.ok(); ++i) tensors.push_back(TakeDescriptor(in, may_stay));
  return tensors;
}

absl::Status TakeStatus(Reader& in) {
  const auto code = in.Get<uint32_t>();
  const std::string text = in.Text(limits::kErrorTextBytesMax);
  if (code > static_cast<uint32_t>(absl::StatusCode::kUnauthenticated)) {
    in.Fail("a status code is unknown");
    return absl::OkStatus();
  }
  if (code == 0 && !text.empty()) in.Fail("an OK status has a text");
  return absl::Status(static_cast<absl::StatusCode>(code), text);
}

LoadRecord TakeLoad(Reader& in) {
  LoadRecord record;
  record.model = in.Text(limits::kRecordBytesMax);
  record.version = in.Get<int64_t>();
  record.directory = in.Text(limits::kRecordBytesMax);
  record.tags = in.Texts(limits::kRecordBytesMax);
  record.session_config = in.Text(limits::kRecordBytesMax);
  record.op_libraries = in.Texts(limits::kRecordBytesMax);
  record.executors = in.Get<uint32_t>();
  if (in.ok() && (record.executors == 0 || record.executors > limits::kExecutorsMax)) {
    in.Fail("the number of executors is outside 1..256");
  }
  record.runs_in_caller = in.Bool();
  record.narrow_session_config = in.Text(limits::kRecordBytesMax);
  record.narrow_bytes_max = in.Get<uint64_t>();
  record.synthetic_warm_up = in.Bool();
  record.read_batching_parameters = in.Bool();
  record.warm_up_rows.resize(in.Count(limits::kLoadListMax, sizeof(int64_t)));
  for (int64_t& rows : record.warm_up_rows) {
    rows = in.Get<int64_t>();
    if (rows < 0) in.Fail("a warm-up size is negative");
  }
  record.sandbox_user = in.Get<uint32_t>();
  record.sandbox = in.Bool();
  record.sandbox_enforced = in.Bool();
  record.accept_weak_files = in.Bool();
  return record;
}

Run TakeRun(Reader& in) {
  Run run;
  run.id = in.Get<uint64_t>();
  run.signature = in.Get<uint32_t>();
  run.own_request_segment = in.Bool<uint16_t>();
  run.own_response_segment = in.Bool<uint16_t>();
  run.response_offset = in.Get<uint64_t>();
  run.response_bytes = in.Get<uint64_t>();
  if (run.response_offset % kOffsetAlignment != 0) in.Fail("an offset is not a multiple of 64");
  if (run.response_offset > UINT64_MAX - run.response_bytes) in.Fail("a region wraps around");
  run.more_signatures.resize(in.Count(limits::kSignaturesPerRunMax, sizeof(uint32_t)));
  for (uint32_t& signature : run.more_signatures) signature = in.Get<uint32_t>();
  run.inputs = TakeDescriptors(in, /*may_stay=*/false);
  return run;
}

RunRecord TakeRuns(Reader& in, size_t count) {
  RunRecord record;
  if (count == 0 || count > limits::kRunsPerRecordMax) in.Fail("the number of runs is wrong");
  for (size_t i = 0; i < count && in.ok(); ++i) record.runs.push_back(TakeRun(in));
  const bool own = std::any_of(record.runs.begin(), record.runs.end(), [](const Run& run) {
    return run.own_request_segment || run.own_response_segment;
  });
  if (own && count != 1) in.Fail("a run with its own segments does not travel alone");
  return record;
}

Completion TakeCompletion(Reader& in) {
  Completion completion;
  completion.id = in.Get<uint64_t>();
  completion.inputs_retained = in.Bool<uint16_t>();
  completion.held = in.Bool<uint16_t>();
  completion.held_bytes = in.Get<uint64_t>();
  completion.run_nanoseconds = in.Get<uint64_t>();
  completion.outputs = TakeDescriptors(in, /*may_stay=*/true);
  completion.status = TakeStatus(in);
  if (!completion.outputs.empty() && (completion.held || !completion.status.ok())) {
    in.Fail("outputs come with an error or with `held`");
  }
  if (completion.held && !completion.status.ok()) in.Fail("an error is `held`");
  if (completion.held != (completion.held_bytes > 0)) in.Fail("`held` and its size disagree");
  return completion;
}

CompletionRecord TakeCompletions(Reader& in, size_t count) {
  CompletionRecord record;
  if (count == 0 || count > limits::kRunsPerRecordMax) in.Fail("the number of answers is wrong");
  for (size_t i = 0; i < count && in.ok(); ++i) record.completions.push_back(TakeCompletion(in));
  return record;
}

LoadFailedRecord TakeLoadFailed(Reader& in) {
  LoadFailedRecord record{.status = TakeStatus(in)};
  if (record.status.ok()) in.Fail("a failed load has status OK");
  return record;
}

// Nothing follows the header.
bool IsBare(RecordKind kind) {
  return kind == RecordKind::kStop || kind == RecordKind::kSegments || kind == RecordKind::kSeal ||
         kind == RecordKind::kSegmentsTaken;
}

struct Header {
  RecordKind kind{};
  size_t count = 0;
};

Header TakeHeader(Reader& in, uint64_t incarnation) {
  Header header;
  if (in.Get<uint32_t>() != kRecordMagic) in.Fail("the magic number is wrong");
  header.kind = static_cast<RecordKind>(in.Get<uint16_t>());
  if (in.Get<uint16_t>() != 0) in.Fail("a reserved field is not zero");
  if (in.Get<uint64_t>() != incarnation) in.Fail("it belongs to another incarnation");
  header.count = in.Get<uint32_t>();
  if (in.Get<uint32_t>() != 0) in.Fail("a reserved field is not zero");
  const bool counted = header.kind == RecordKind::kRun || header.kind == RecordKind::kCompletion;
  if (!counted && header.count != (IsBare(header.kind) ? 0 : 1)) in.Fail("a wrong count");
  return header;
}

std::optional<ToWorker> TakeToWorker(Reader& in, const Header& header) {
  switch (header.kind) {
    case RecordKind::kLoad:
      return TakeLoad(in);
    case RecordKind::kRun:
      return TakeRuns(in, header.count);
    case RecordKind::kCollect: {
      const auto id = in.Get<uint64_t>();
      return CollectRecord{.id = id, .response_bytes = in.Get<uint64_t>()};
    }
    case RecordKind::kStop:
      return StopRecord{};
    case RecordKind::kSegments:
      return SegmentsRecord{};
    case RecordKind::kSeal:
      return SealRecord{};
    default:
      return std::nullopt;
  }
}

std::optional<ToFront> TakeToFront(Reader& in, const Header& header) {
  switch (header.kind) {
    case RecordKind::kHello:
      return HelloRecord{.pid = in.Get<int32_t>()};
    case RecordKind::kLoaded:
      return LoadedRecord{.info_bytes = in.Get<uint64_t>()};
    case RecordKind::kLoadFailed:
      return TakeLoadFailed(in);
    case RecordKind::kCompletion:
      return TakeCompletions(in, header.count);
    case RecordKind::kHeartbeat:
      return HeartbeatRecord{.runs_done = in.Get<uint64_t>()};
    case RecordKind::kDying: {
      const auto signal = in.Get<int32_t>();
      return DyingRecord{.signal = signal, .system_call = in.Get<int32_t>()};
    }
    case RecordKind::kSegmentsTaken:
      return SegmentsTakenRecord{};
    case RecordKind::kSealed: {
      absl::Status status = TakeStatus(in);
      return SealedRecord{.status = std::move(status),
                          .report = in.Text(limits::kErrorTextBytesMax)};
    }
    default:
      return std::nullopt;
  }
}

// What both directions share: the header, an unknown kind, bytes left over.
template <typename Record>
absl::StatusOr<Record> Decode(std::string_view bytes, uint64_t incarnation,
                              std::optional<Record> (*take)(Reader&, const Header&)) {
  if (bytes.size() > limits::kRecordBytesMax) {
    return absl::InvalidArgumentError("malformed record: it is too long");
  }
  Reader in(bytes);
  const Header header = TakeHeader(in, incarnation);
  if (!in.ok()) return in.error();
  std::optional<Record> record = take(in, header);
  if (!record.has_value()) in.Fail("its kind is unknown");
  if (in.ok() && !in.at_end()) in.Fail("bytes are left over");
  if (!in.ok()) return in.error();
  return *std::move(record);
}

}  // namespace

absl::StatusOr<ToWorker> DecodeToWorker(std::string_view bytes, uint64_t incarnation) {
  return Decode<ToWorker>(bytes, incarnation, &TakeToWorker);
}

absl::StatusOr<ToFront> DecodeToFront(std::string_view bytes, uint64_t incarnation) {
  return Decode<ToFront>(bytes, incarnation, &TakeToFront);
}

}  // namespace tensord::channel
