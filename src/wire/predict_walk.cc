// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/predict_walk.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/protobuf_wire.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "wire/tensor_walk.h"

namespace tensord::wire {
namespace {

using base::WireReader;
using base::WireType;

absl::Status MalformedMessage(std::string_view message) {
  return absl::InvalidArgumentError(base::Cat("the bytes are not a ", message, " message"));
}

// A google.protobuf.Int64Value.
absl::Status MergeVersion(std::string_view bytes, int64_t* version) {
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == 1 && reader.type() == WireType::kVarint) {
      *version = static_cast<int64_t>(reader.number());
    }
  }
  return reader.ok() ? absl::OkStatus() : MalformedMessage("google.protobuf.Int64Value");
}

absl::Status CheckName(const tensor::ModelSpec& spec) {
  return spec.name.empty() ? absl::InvalidArgumentError("ModelSpec has no name specified.")
                           : absl::OkStatus();
}

using Entry = WalkedPredict::Entry;

absl::StatusOr<Entry> WalkEntry(std::string_view bytes) {
  Entry entry;
  bool has_value = false;
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.type() != WireType::kBytes) continue;
    if (reader.field() == 1) entry.name = reader.bytes();
    if (reader.field() != 2) continue;
    if (has_value) {
      if (entry.more.size() == limits::kInputsMax) {
        return absl::InvalidArgumentError(base::Cat(
            "input \"", entry.name, "\" comes in more than ", limits::kInputsMax, " pieces"));
      }
      entry.more.push_back(reader.bytes());
    } else {
      entry.value = reader.bytes();
      has_value = true;
    }
  }
  if (!reader.ok()) return MalformedMessage("tensorflow.serving.PredictRequest.InputsEntry");
  return entry;
}

absl::Status AddEntry(std::string_view bytes, std::vector<Entry>* entries) {
  if (entries->size() == limits::kInputsMax) {
    return absl::InvalidArgumentError(
        base::Cat("the request has more than ", limits::kInputsMax, " inputs"));
  }
  ASSIGN_OR_RETURN(Entry entry, WalkEntry(bytes));
  entry.place = entries->size();
  entries->push_back(std::move(entry));
  return absl::OkStatus();
}

// Sorts by name; of entries with one name the last stays, as in a protobuf map.
void KeepLast(std::vector<Entry>* entries) {
  if (entries->size() < 2) return;
  std::sort(entries->begin(), entries->end(), [](const Entry& a, const Entry& b) {
    return a.name != b.name ? a.name < b.name : a.place > b.place;
  });
  const auto same = [](const Entry& a, const Entry& b) { return a.name == b.name; };
  entries->erase(std::unique(entries->begin(), entries->end(), same), entries->end());
}

absl::StatusOr<DecodedTensor> DecodeEntry(const Entry& entry, DecodeBudget* budget) {
  if (entry.more.empty()) return DecodeTensor({&entry.value, 1}, budget);
  std::vector<std::string_view> pieces = {entry.value};
  pieces.insert(pieces.end(), entry.more.begin(), entry.more.end());
  return DecodeTensor(pieces, budget);
}

bool Skip(uint64_t bytes, std::string_view* rest) {
  if (bytes > rest->size()) return false;
  rest->remove_prefix(static_cast<size_t>(bytes));
  return true;
}

// Moves to the payload of the next length-delimited field of that number and gives its length,
// which may be more than there is. None when it does not begin in what there is.
std::optional<uint64_t> Enter(uint32_t field, std::string_view* rest) {
  uint64_t tag = 0;
  uint64_t value = 0;
  while (base::ReadVarint(rest, &tag)) {
    switch (static_cast<WireType>(tag & 7)) {
      case WireType::kVarint:
        if (!base::ReadVarint(rest, &value)) return std::nullopt;
        break;
      case WireType::kFixed64:
        if (!Skip(8, rest)) return std::nullopt;
        break;
      case WireType::kFixed32:
        if (!Skip(4, rest)) return std::nullopt;
        break;
      case WireType::kBytes:
        if (!base::ReadVarint(rest, &value)) return std::nullopt;
        if (tag >> 3 == field) return value;
        if (!Skip(value, rest)) return std::nullopt;
        break;
      default:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

constexpr uint32_t kInputsField = 2;         // Of PredictRequest.
constexpr uint32_t kValueField = 2;          // Of an entry of its map.
constexpr uint32_t kTensorContentField = 4;  // Of TensorProto.

}  // namespace

std::optional<ContentPlace> PeekContent(std::string_view prefix, uint64_t least) {
  std::string_view rest = prefix;
  while (const std::optional<uint64_t> entry_bytes = Enter(kInputsField, &rest)) {
    std::string_view entry = rest.substr(0, *entry_bytes);
    if (const auto value_bytes = Enter(kValueField, &entry)) {
      std::string_view tensor = entry.substr(0, *value_bytes);
      const std::optional<uint64_t> bytes = Enter(kTensorContentField, &tensor);
      if (bytes.value_or(0) >= std::max<uint64_t>(least, 1)) {
        return ContentPlace{.offset = static_cast<size_t>(tensor.data() - prefix.data()),
                            .bytes = *bytes};
      }
    }
    if (!Skip(*entry_bytes, &rest)) break;
  }
  return std::nullopt;
}

absl::Status MergeModelSpec(std::string_view bytes, tensor::ModelSpec* spec) {
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.type() != WireType::kBytes) continue;
    switch (reader.field()) {
      case 1:
        spec->name = reader.bytes();
        break;
      case 2: {
        int64_t version = spec->version.value_or(0);
        RETURN_IF_ERROR(MergeVersion(reader.bytes(), &version));
        spec->version = version;
        spec->version_label.clear();
        break;
      }
      case 3:
        spec->signature_name = reader.bytes();
        break;
      case 4:
        spec->version_label = reader.bytes();
        spec->version.reset();
        break;
      default:
        break;
    }
  }
  return reader.ok() ? absl::OkStatus() : MalformedMessage("tensorflow.serving.ModelSpec");
}

absl::StatusOr<tensor::ModelSpec> ParseModelSpec(std::string_view bytes) {
  tensor::ModelSpec spec;
  RETURN_IF_ERROR(MergeModelSpec(bytes, &spec));
  RETURN_IF_ERROR(CheckName(spec));
  return spec;
}

std::optional<tensor::ModelSpec> PeekModelSpec(std::string_view prefix) {
  // The reader gives a field only when all of it is there.
  WireReader reader(prefix);
  if (!reader.Next() || reader.field() != 1 || reader.type() != WireType::kBytes) {
    return std::nullopt;
  }
  absl::StatusOr<tensor::ModelSpec> spec = ParseModelSpec(reader.bytes());
  if (!spec.ok()) return std::nullopt;
  return *std::move(spec);
}

absl::StatusOr<WalkedPredict> WalkPredict(std::string_view body) {
  WalkedPredict walked;
  bool has_spec = false;
  WireReader reader(body);
  while (reader.Next()) {
    if (reader.type() != WireType::kBytes) continue;
    switch (reader.field()) {
      case 1:
        has_spec = true;
        RETURN_IF_ERROR(MergeModelSpec(reader.bytes(), &walked.spec));
        break;
      case 2:
        RETURN_IF_ERROR(AddEntry(reader.bytes(), &walked.entries));
        break;
      case 3:
        if (walked.output_filter.size() == limits::kInputsMax) {
          return absl::InvalidArgumentError(
              base::Cat("output_filter names more than ", limits::kInputsMax, " outputs"));
        }
        walked.output_filter.push_back(reader.bytes());
        break;
      default:
        break;
    }
  }
  if (!reader.ok()) return MalformedMessage("tensorflow.serving.PredictRequest");
  if (!has_spec) return absl::InvalidArgumentError("Missing ModelSpec");
  RETURN_IF_ERROR(CheckName(walked.spec));
  KeepLast(&walked.entries);
  return walked;
}

absl::StatusOr<tensor::PredictRequest> DecodePredict(WalkedPredict walked) {
  tensor::PredictRequest request;
  request.spec = std::move(walked.spec);
  request.output_filter = std::move(walked.output_filter);
  DecodeBudget budget;
  request.inputs.reserve(walked.entries.size());
  for (const Entry& entry : walked.entries) {
    absl::StatusOr<DecodedTensor> tensor = DecodeEntry(entry, &budget);
    if (!tensor.ok()) {
      return base::WithContext(tensor.status(),
                               base::Cat("tensor parsing error: ", entry.name, ": "));
    }
    request.inputs.push_back({entry.name, tensor->view});
    if (tensor->owned.dtype != tensor::DType::kInvalid) {
      request.decoded.push_back(std::move(tensor->owned));
    }
  }
  return request;
}

absl::StatusOr<tensor::PredictRequest> ParsePredict(std::string_view body) {
  ASSIGN_OR_RETURN(WalkedPredict walked, WalkPredict(body));
  return DecodePredict(std::move(walked));
}

}  // namespace tensord::wire
