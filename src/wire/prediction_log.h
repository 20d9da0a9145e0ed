// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tensor/request.h"

// The tensorflow.serving.PredictionLog messages of request logs: the form that warm-up reads.
namespace tensord::wire {

// By the message's field in PredictionLog.
enum class LoggedCall : uint32_t { kClassify = 2, kRegress = 3, kMultiInference = 4, kPredict = 6 };

struct LogFacts {
  tensor::ModelSpec answered = {};  // The version that ran.
  double sampling_rate = 1;
  int64_t unix_seconds = 0;
};

// `request` and `response` are serialized messages of the call's kind.
std::string EncodePredictionLog(LoggedCall call, std::string_view request,
                                std::string_view response, const LogFacts& facts);

}  // namespace tensord::wire
