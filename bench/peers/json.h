// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "tensor/signature.h"
#include "tensord/predict.pb.h"

namespace tensord::peers {

// Reads {"instances": ...} or {"inputs": ...} through a DOM into the value fields of a message, as
// tensorflow_model_server does: numbers in full precision, NaN and infinities allowed. Sets
// *row_format for "instances". Floats and integers only, plain instances for one input only.
absl::Status ReadJson(const char* text, const tensor::Signature& signature,
                      tensorflow::serving::PredictRequest* request, bool* row_format);

// The answer's outputs as {"predictions": ...} or {"outputs": ...}; floats and integers.
std::string WriteJson(const tensorflow::serving::PredictResponse& response, bool row_format);

}  // namespace tensord::peers
