// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/warm_up_log.h"

#include "base/protobuf_wire.h"

namespace tensord::wire {
namespace {

using Kind = WarmUpRecord::Kind;

// PredictionLog's oneof log_type.
Kind KindOf(uint32_t field) {
  switch (field) {
    case 2:
      return Kind::kClassify;
    case 3:
      return Kind::kRegress;
    case 4:
      return Kind::kMultiInference;
    case 5:
      return Kind::kSessionRun;
    case 6:
      return Kind::kPredict;
    case 7:
      return Kind::kPredictStreamed;
    default:
      return Kind::kNone;
  }
}

}  // namespace

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kNone:
      return "none";
    case Kind::kPredict:
      return "predict";
    case Kind::kClassify:
      return "classify";
    case Kind::kRegress:
      return "regress";
    case Kind::kMultiInference:
      return "multi_inference";
    case Kind::kSessionRun:
      return "session_run";
    case Kind::kPredictStreamed:
      return "predict_streamed";
  }
  return "unknown";
}

absl::StatusOr<WarmUpRecord> ParseWarmUpRecord(std::string_view bytes) {
  WarmUpRecord record;
  std::string_view log;
  base::WireReader reader(bytes);
  while (reader.Next()) {
    const Kind kind = KindOf(reader.field());
    if (kind == Kind::kNone) continue;
    if (reader.type() != base::WireType::kBytes) {
      return absl::InvalidArgumentError("it is no PredictionLog");
    }
    record.kind = kind;  // The last of a oneof counts.
    log = reader.bytes();
  }
  // Each of the logs has its request as field 1.
  base::WireReader inside(log);
  while (inside.Next()) {
    if (inside.field() == 1 && inside.type() == base::WireType::kBytes) {
      record.request = inside.bytes();
    }
  }
  if (!reader.ok() || !inside.ok()) {
    return absl::InvalidArgumentError("it is no PredictionLog");
  }
  return record;
}

}  // namespace tensord::wire
