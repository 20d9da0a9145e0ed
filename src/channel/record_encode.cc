// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <string_view>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "channel/record.h"
#include "channel/record_format.h"

namespace tensord::channel {
namespace {

class Writer {
 public:
  Writer(RecordKind kind, uint64_t incarnation, size_t count) {
    U32(kRecordMagic);
    U16(static_cast<uint16_t>(kind));
    U16(0);
    U64(incarnation);
    U32(static_cast<uint32_t>(count));
    U32(0);
  }

  void U8(uint8_t value) { Raw(&value, sizeof(value)); }
  void U16(uint16_t value) { Raw(&value, sizeof(value)); }
  void U32(uint32_t value) { Raw(&value, sizeof(value)); }
  void U64(uint64_t value) { Raw(&value, sizeof(value)); }
  void I64(int64_t value) { Raw(&value, sizeof(value)); }
  void Bool(bool value) { U8(value ? 1 : 0); }
  void Text(std::string_view text) {
    U32(static_cast<uint32_t>(text.size()));
    out_.append(text);
  }
  void Texts(const std::vector<std::string>& texts) {
    U32(static_cast<uint32_t>(texts.size()));
    for (const std::string& text : texts) Text(text);
  }
  std::string Finish() { return std::move(out_); }

 private:
  void Raw(const void* data, size_t bytes) { out_.append(static_cast<const char*>(data), bytes); }

  std::string out_;
};

// A status's text as it travels: capped, and not in the middle of a UTF-8 sequence.
std::string_view CappedText(const absl::Status& status) {
  std::string_view text = base::Message(status);
  if (text.size() <= limits::kErrorTextBytesMax) return text;
  size_t end = limits::kErrorTextBytesMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

void Put(Writer& out, const absl::Status& status) {
  out.U32(static_cast<uint32_t>(status.code()));
  out.Text(status.ok() ? std::string_view() : CappedText(status));
}

void Put(Writer& out, const TensorDescriptor& tensor) {
  out.U32(static_cast<uint32_t>(tensor.dtype));
  out.U32(static_cast<uint32_t>(tensor.shape.rank()));
  out.U64(tensor.offset);
  out.U64(tensor.bytes);
  for (int64_t dim : tensor.shape.dims()) out.I64(dim);
}

void Put(Writer& out, const std::vector<TensorDescriptor>& tensors) {
  out.U32(static_cast<uint32_t>(tensors.size()));
  for (const TensorDescriptor& tensor : tensors) Put(out, tensor);
}

void Put(Writer& out, const Run& run) {
  out.U64(run.id);
  out.U32(run.signature);
  out.U16(run.own_request_segment ? 1 : 0);
  out.U16(run.own_response_segment ? 1 : 0);
  out.U64(run.response_offset);
  out.U64(run.response_bytes);
  out.U32(static_cast<uint32_t>(run.more_signatures.size()));
  for (const uint32_t signature : run.more_signatures) out.U32(signature);
  Put(out, run.inputs);
}

void Put(Writer& out, const Completion& completion) {
  out.U64(completion.id);
  out.U16(completion.inputs_retained ? 1 : 0);
  out.U16(completion.held ? 1 : 0);
  out.U64(completion.held_bytes);
  out.U64(completion.run_nanoseconds);
  Put(out, completion.outputs);
  Put(out, completion.status);
}

size_t DescriptorsBytes(const std::vector<TensorDescriptor>& tensors) {
  size_t bytes = 0;
  for (const TensorDescriptor& tensor : tensors) {
    bytes += kDescriptorBytes + sizeof(int64_t) * tensor.shape.dims().size();
  }
  return bytes;
}

struct EncodeVisitor {
  uint64_t incarnation;

  std::string operator()(const LoadRecord& record) const {
    Writer out(RecordKind::kLoad, incarnation, 1);
    out.Text(record.model);
    out.I64(record.version);
    out.Text(record.directory);
    out.Texts(record.tags);
    out.Text(record.session_config);
    out.Texts(record.op_libraries);
    out.U32(record.executors);
    out.Bool(record.runs_in_caller);
    out.Text(record.narrow_session_config);
    out.U64(record.narrow_bytes_max);
    out.Bool(record.synthetic_warm_up);
    out.Bool(record.read_batching_parameters);
    out.U32(static_cast<uint32_t>(record.warm_up_rows.size()));
    for (int64_t rows : record.warm_up_rows) out.I64(rows);
    out.U32(record.sandbox_user);
    out.Bool(record.sandbox);
    out.Bool(record.sandbox_enforced);
    out.Bool(record.accept_weak_files);
    return out.Finish();
  }
  std::string operator()(const RunRecord& record) const {
    Writer out(RecordKind::kRun, incarnation, record.runs.size());
    for (const Run& run : record.runs) Put(out, run);
    return out.Finish();
  }
  std::string operator()(const CollectRecord& record) const {
    Writer out(RecordKind::kCollect, incarnation, 1);
    out.U64(record.id);
    out.U64(record.response_bytes);
    return out.Finish();
  }
  std::string operator()(const StopRecord&) const {
    return Writer(RecordKind::kStop, incarnation, 0).Finish();
  }
  std::string operator()(const SegmentsRecord&) const {
    return Writer(RecordKind::kSegments, incarnation, 0).Finish();
  }
  std::string operator()(const SealRecord&) const {
    return Writer(RecordKind::kSeal, incarnation, 0).Finish();
  }
  std::string operator()(const SealedRecord& record) const {
    Writer out(RecordKind::kSealed, incarnation, 1);
    Put(out, record.status);
    out.Text(record.report.substr(0, limits::kErrorTextBytesMax));
    return out.Finish();
  }
  std::string operator()(const SegmentsTakenRecord&) const {
    return Writer(RecordKind::kSegmentsTaken, incarnation, 0).Finish();
  }
  std::string operator()(const HelloRecord& record) const {
    Writer out(RecordKind::kHello, incarnation, 1);
    out.U32(static_cast<uint32_t>(record.pid));
    return out.Finish();
  }
  std::string operator()(const LoadedRecord& record) const {
    Writer out(RecordKind::kLoaded, incarnation, 1);
    out.U64(record.info_bytes);
    return out.Finish();
  }
  std::string operator()(const LoadFailedRecord& record) const {
    Writer out(RecordKind::kLoadFailed, incarnation, 1);
    Put(out, record.status);
    return out.Finish();
  }
  std::string operator()(const CompletionRecord& record) const {
    Writer out(RecordKind::kCompletion, incarnation, record.completions.size());
    for (const Completion& completion : record.completions) Put(out, completion);
    return out.Finish();
  }
  std::string operator()(const HeartbeatRecord& record) const {
    Writer out(RecordKind::kHeartbeat, incarnation, 1);
    out.U64(record.runs_done);
    return out.Finish();
  }
  std::string operator()(const DyingRecord& record) const {
    Writer out(RecordKind::kDying, incarnation, 1);
    out.U32(static_cast<uint32_t>(record.signal));
    // The last four bytes: the handler writes the number there (worker/last_words.cc).
    out.U32(static_cast<uint32_t>(record.system_call));
    return out.Finish();
  }
};

}  // namespace

std::string Encode(uint64_t incarnation, const ToWorker& record) {
  return std::visit(EncodeVisitor{incarnation}, record);
}

std::string Encode(uint64_t incarnation, const ToFront& record) {
  return std::visit(EncodeVisitor{incarnation}, record);
}

size_t RunBytes(const Run& run) {
  return kRunBytes + sizeof(uint32_t) * run.more_signatures.size() + DescriptorsBytes(run.inputs);
}

size_t CompletionBytes(const Completion& completion) {
  return kCompletionBytes + DescriptorsBytes(completion.outputs) +
         CappedText(completion.status).size();
}

}  // namespace tensord::channel
