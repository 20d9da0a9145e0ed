// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/prediction_log.h"

#include <bit>

#include "base/protobuf_wire.h"
#include "wire/predict_encode.h"

namespace tensord::wire {
namespace {

std::string EncodeMetadata(const LogFacts& facts) {
  std::string sampling;
  base::AppendTag(1, base::WireType::kFixed64, &sampling);
  const auto rate = std::bit_cast<uint64_t>(facts.sampling_rate);
  for (int i = 0; i < 8; ++i) sampling.push_back(static_cast<char>(rate >> (8 * i)));
  std::string metadata;
  base::AppendBytesField(1, EncodeModelSpec(facts.answered), &metadata);
  base::AppendBytesField(2, sampling, &metadata);
  base::AppendVarintField(4, static_cast<uint64_t>(facts.unix_seconds), &metadata);
  return metadata;
}

}  // namespace

std::string EncodePredictionLog(LoggedCall call, std::string_view request,
                                std::string_view response, const LogFacts& facts) {
  // Sized first: requests and answers may be large.
  const std::string metadata = EncodeMetadata(facts);
  constexpr size_t kHeadersMax = 32;
  const uint64_t both = request.size() + response.size() + 2 +
                        static_cast<uint64_t>(base::VarintBytes(request.size())) +
                        static_cast<uint64_t>(base::VarintBytes(response.size()));
  std::string log;
  log.reserve(metadata.size() + both + kHeadersMax);
  base::AppendBytesField(1, metadata, &log);
  base::AppendTag(static_cast<uint32_t>(call), base::WireType::kBytes, &log);
  base::AppendVarint(both, &log);
  base::AppendBytesField(1, request, &log);
  base::AppendBytesField(2, response, &log);
  return log;
}

}  // namespace tensord::wire
