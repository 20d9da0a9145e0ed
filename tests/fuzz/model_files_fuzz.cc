// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

// Bytes as each of the files that come with a model and that we read ourselves: the graph and its
// signatures, the index of its variables, session overrides, warm-up records, and what TensorFlow
// Lite files hold beside their tables.

#include <string>
#include <string_view>

#include "base/check.h"
#include "base/tf_record.h"
#include "engine/litert/signature_metadata.h"
#include "engine/litert/strings.h"
#include "engine/model_info.h"
#include "engine/signature_def.h"
#include "engine/tensorflow/graph_state.h"
#include "engine/tensorflow/session_overrides.h"
#include "engine/unservable.h"
#include "models/variables_index.h"
#include "wire/signatures.h"
#include "wire/warm_up_log.h"

namespace tensord {
namespace {

void TrySavedModel(std::string_view bytes) {
  for (const uint32_t field : {engine::kSignatureDefMapField, engine::kMetaGraphSignatureField}) {
    const auto signatures = engine::ParseSignatureDefs(bytes, field);
    if (!signatures.ok()) continue;
    const auto findings = engine::ExamineGraph(bytes, *signatures);
    if (findings.ok()) TENSORD_CHECK(findings->may_join_rows.size() == signatures->size());
  }
  (void)engine::DescribeUnservable(bytes);
  (void)engine::ParseSavedModelConfig(bytes);
  (void)engine::ParseModelInfo(bytes);
  (void)wire::ParseSignatures(bytes);
  (void)models::ShardBytes(bytes);
}

void TryWarmUp(std::string_view bytes) {
  (void)wire::ParseWarmUpRecord(bytes);
  if (bytes.size() < base::kTfRecordHeaderBytes) return;
  const auto length = base::TfRecordLength(bytes.substr(0, base::kTfRecordHeaderBytes));
  bytes.remove_prefix(base::kTfRecordHeaderBytes);
  if (!length || *length > bytes.size() || bytes.size() - *length < base::kTfRecordFooterBytes) {
    return;
  }
  (void)base::TfRecordMatches(bytes.substr(0, *length),
                              bytes.substr(*length, base::kTfRecordFooterBytes));
}

void TryLite(std::string_view bytes) {
  (void)engine::ParseSignatureMetadata(bytes);
  const auto raw = std::as_bytes(std::span(bytes.data(), bytes.size()));
  for (const uint64_t elements : {uint64_t{0}, uint64_t{1}, uint64_t{3}, uint64_t{1} << 40}) {
    const auto strings = engine::FromLiteStrings(raw, elements);
    if (!strings.ok()) continue;
    TENSORD_CHECK(strings->size() == elements);
    for (const std::string_view text : *strings) {
      TENSORD_CHECK(text.empty() || (text.data() >= bytes.data() &&
                                     text.data() + text.size() <= bytes.data() + bytes.size()));
    }
  }
}

}  // namespace
}  // namespace tensord

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  tensord::TrySavedModel(bytes);
  tensord::TryWarmUp(bytes);
  tensord::TryLite(bytes);
  return 0;
}
