// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/model_info.h"

#include <algorithm>
#include <string_view>

#include "base/protobuf_wire.h"
#include "base/sched_limits.h"
#include "base/text.h"

namespace tensord::engine {
namespace {

// Field numbers of the wire form, which is protobuf's without a .proto.
enum Field : uint32_t {
  kSignatureDefMap = 1,
  kRuntimeVersion = 2,
  kDevice = 3,
  kStatefulReason = 4,
  kWarning = 5,
  kSandbox = 6,
  kPrivateBytes = 7,
  kWarmUpRuns = 8,
  kLoadMicroseconds = 9,
  kWarmUpMicroseconds = 10,
  kWarmUpSource = 11,
  kBatchingParameters = 12,
  kAlone = 13,  // Name and reason, each behind its tag.
  kRunTime = 14,
  kTwoWidths = 15,
  kSandboxGrade = 16,
  kSandboxStage = 17,
};
// Of a run time.
enum RunTimeField : uint32_t { kSignature = 1, kRows = 2, kNanoseconds = 3 };

// A worker's description is shown to people: nobody reads more, and a hostile one must not make the
// front hold more.
constexpr size_t kTextsMax = 4096;
constexpr size_t kTextBytesMax = 64 * 1024;

absl::Status TooMuch(std::string_view what) {
  return absl::InvalidArgumentError(base::Cat("a model's description has too many or too long ",
                                              what, "; the limits are ", kTextsMax, " texts of ",
                                              kTextBytesMax, " bytes"));
}

absl::Status SetText(std::string_view what, std::string_view value, std::string* out) {
  if (value.size() > kTextBytesMax) return TooMuch(what);
  *out = value;
  return absl::OkStatus();
}

absl::Status AddText(std::string_view what, std::string_view value, std::vector<std::string>* out) {
  if (value.size() > kTextBytesMax || out->size() >= kTextsMax) return TooMuch(what);
  out->emplace_back(value);
  return absl::OkStatus();
}

absl::Status AddAlone(std::string_view entry, ModelInfo* info) {
  std::string_view name;
  std::string_view reason;
  base::WireReader reader(entry);
  while (reader.Next()) {
    if (reader.type() != base::WireType::kBytes) continue;
    if (reader.field() == 1) name = reader.bytes();
    if (reader.field() == 2) reason = reader.bytes();
  }
  if (!reader.ok()) return absl::InvalidArgumentError("a model's description is malformed");
  if (entry.size() > kTextBytesMax || info->alone.size() >= kTextsMax) {
    return TooMuch("reasons to run alone");
  }
  info->alone[std::string(name)] = reason;
  return absl::OkStatus();
}

absl::Status AddRunTime(std::string_view bytes, std::vector<RunTime>* out) {
  if (out->size() >= limits::kTimedRunsMax) return TooMuch("run times");
  RunTime time;
  base::WireReader reader(bytes);
  while (reader.Next()) {
    const bool number = reader.type() == base::WireType::kVarint;
    if (number && reader.field() == kSignature && reader.number() <= UINT32_MAX) {
      time.signature = static_cast<uint32_t>(reader.number());
    } else if (number && reader.field() == kRows && reader.number() <= INT64_MAX) {
      time.rows = static_cast<int64_t>(reader.number());
    } else if (number && reader.field() == kNanoseconds) {
      time.nanoseconds = reader.number();
    } else {
      return absl::InvalidArgumentError("a run time of a model's description is malformed");
    }
  }
  if (!reader.ok()) return absl::InvalidArgumentError("a run time is cut or garbled");
  out->push_back(time);
  return absl::OkStatus();
}

absl::Status SetBytesField(uint32_t field, std::string_view value, ModelInfo* info) {
  switch (field) {
    case kSignatureDefMap:
      info->signature_def_map = value;
      return absl::OkStatus();
    case kRuntimeVersion:
      return SetText("runtime version", value, &info->runtime_version);
    case kDevice:
      return AddText("devices", value, &info->devices);
    case kWarmUpSource:
      return SetText("warm-up source", value, &info->warm_up_source);
    case kStatefulReason:
      return SetText("stateful reason", value, &info->stateful_reason);
    case kWarning:
      return AddText("warnings", value, &info->warnings);
    case kSandbox:
      return AddText("sandbox lines", value, &info->sandbox);
    case kSandboxGrade:
      // A worker's word; logs and pages show it.
      if (value.size() > 1 || value.find_first_not_of("ABCD") != std::string_view::npos) {
        return absl::InvalidArgumentError("a model's description has an unknown sandbox grade");
      }
      info->sandbox_grade = value;
      return absl::OkStatus();
    case kAlone:
      return AddAlone(value, info);
    case kRunTime:
      return AddRunTime(value, &info->run_times);
    case kBatchingParameters:
      return SetText("batching parameters", value, &info->batching_parameters.emplace());
    default:
      return absl::InvalidArgumentError(
          base::Cat("a model's description has the unknown field ", field));
  }
}

absl::Status SetNumberField(uint32_t field, uint64_t value, ModelInfo* info) {
  switch (field) {
    case kPrivateBytes:
      info->private_bytes = value;
      return absl::OkStatus();
    case kWarmUpRuns:
      if (value > UINT32_MAX) return absl::InvalidArgumentError("more warm-up runs than 32 bits");
      info->warm_up_runs = static_cast<uint32_t>(value);
      return absl::OkStatus();
    case kSandboxStage:
      info->sandbox_stage = value == 0 ? 0 : 1;
      return absl::OkStatus();
    case kLoadMicroseconds:
      info->load_microseconds = value;
      return absl::OkStatus();
    case kTwoWidths:
      info->two_widths = value != 0;
      return absl::OkStatus();
    case kWarmUpMicroseconds:
      info->warm_up_microseconds = value;
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(
          base::Cat("a model's description has the unknown number ", field));
  }
}

}  // namespace

std::string Serialize(const ModelInfo& info) {
  std::string out;
  base::AppendBytesField(kSignatureDefMap, info.signature_def_map, &out);
  base::AppendBytesField(kRuntimeVersion, info.runtime_version, &out);
  for (const std::string& device : info.devices) base::AppendBytesField(kDevice, device, &out);
  base::AppendBytesField(kStatefulReason, info.stateful_reason, &out);
  for (const std::string& text : info.warnings) base::AppendBytesField(kWarning, text, &out);
  for (const std::string& text : info.sandbox) base::AppendBytesField(kSandbox, text, &out);
  base::AppendBytesField(kSandboxGrade, info.sandbox_grade, &out);
  base::AppendVarintField(kSandboxStage, info.sandbox_stage, &out);
  base::AppendVarintField(kPrivateBytes, info.private_bytes, &out);
  base::AppendVarintField(kWarmUpRuns, info.warm_up_runs, &out);
  base::AppendVarintField(kLoadMicroseconds, info.load_microseconds, &out);
  base::AppendVarintField(kWarmUpMicroseconds, info.warm_up_microseconds, &out);
  base::AppendBytesField(kWarmUpSource, info.warm_up_source, &out);
  for (const auto& [name, reason] : info.alone) {
    std::string entry;
    base::AppendBytesField(1, name, &entry);
    base::AppendBytesField(2, reason, &entry);
    base::AppendBytesField(kAlone, entry, &out);
  }
  for (const RunTime& time : info.run_times) {
    std::string bytes;
    base::AppendVarintField(kSignature, time.signature, &bytes);
    base::AppendVarintField(kRows, static_cast<uint64_t>(time.rows), &bytes);
    base::AppendVarintField(kNanoseconds, time.nanoseconds, &bytes);
    base::AppendBytesField(kRunTime, bytes, &out);
  }
  base::AppendVarintField(kTwoWidths, info.two_widths ? 1 : 0, &out);
  if (info.batching_parameters) {
    base::AppendBytesField(kBatchingParameters, *info.batching_parameters, &out);
  }
  return out;
}

bool UsesGpu(const ModelInfo& info) {
  return std::ranges::any_of(info.devices, [](const std::string& device) {
    return device.find("GPU") != std::string::npos;
  });
}

absl::StatusOr<ModelInfo> ParseModelInfo(std::string_view bytes) {
  ModelInfo info;
  base::WireReader reader(bytes);
  while (reader.Next()) {
    absl::Status status =
        absl::InvalidArgumentError("a model's description has a field of a type it never has");
    if (reader.type() == base::WireType::kBytes) {
      status = SetBytesField(reader.field(), reader.bytes(), &info);
    } else if (reader.type() == base::WireType::kVarint) {
      status = SetNumberField(reader.field(), reader.number(), &info);
    }
    if (!status.ok()) return status;
  }
  if (!reader.ok()) return absl::InvalidArgumentError("a model's description is cut or garbled");
  return info;
}

}  // namespace tensord::engine
