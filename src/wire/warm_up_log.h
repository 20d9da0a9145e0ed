// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string_view>

#include "absl/status/statusor.h"

namespace tensord::wire {

// A recorded request: one record of a version's assets.extra/tf_serving_warmup_requests.
struct WarmUpRecord {
  enum class Kind {
    kNone,  // A record of no type: nothing to do, as in the original.
    kPredict,
    kClassify,
    kRegress,
    kMultiInference,
    kSessionRun,
    kPredictStreamed,
  };
  Kind kind = Kind::kNone;
  std::string_view request;  // The serialized request of that kind.
};

// "predict", for words.
std::string_view KindName(WarmUpRecord::Kind kind);

// A serialized tensorflow.serving.PredictionLog. INVALID_ARGUMENT when it is none.
// Lifetime: the bytes outlive the record.
absl::StatusOr<WarmUpRecord> ParseWarmUpRecord(std::string_view bytes);

}  // namespace tensord::wire
