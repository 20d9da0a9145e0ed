// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/tensor.h"
#include "wire/json/number_nest.h"

namespace tensord::wire {

// Turns JSON leaves into the elements of one tensor, straight into its final bytes.
class ElementWriter {
 public:
  enum class Problem : uint8_t {
    kNone,
    kType,           // Not a value of this dtype.
    kRange,          // An integer that the dtype cannot hold.
    kBase64,         // {"b64": ...} that is not base64.
    kBase64Object,   // An object that is not {"b64": "..."} where a string belongs.
    kUnimplemented,  // A dtype that JSON has no form for.
  };

  // Room for `elements_max` elements; INVALID_ARGUMENT when that is more than `bytes_max` bytes.
  static absl::StatusOr<ElementWriter> Make(tensor::DType dtype, uint64_t elements_max,
                                            uint64_t bytes_max);

  // Takes the leaf at the start of [at, end), which a cursor has checked. Returns its end; null
  // when it is refused: problem() then says why.
  // REQUIRES: fewer than elements_max were added.
  const char* Add(const char* at, const char* end) { return (this->*add_)(at, end); }
  Problem problem() const { return problem_; }
  // Takes a whole nest of lists of plain numbers at once (number_nest.h). Null when it is not one
  // of those, or does not fit the room that is left: nothing was added then.
  const char* AddNest(const char* at, const char* end, NumberNest* nest) {
    return add_nest_ == nullptr ? nullptr : (this->*add_nest_)(at, end, nest);
  }

  tensor::DType dtype() const { return dtype_; }
  uint64_t elements() const { return elements_; }
  uint64_t elements_max() const { return elements_max_; }

  // The tensor of all elements. REQUIRES: shape.elements() == elements().
  absl::StatusOr<tensor::Tensor> Finish(const tensor::Shape& shape, uint64_t bytes_max) &&;

 private:
  using AddFunction = const char* (ElementWriter::*)(const char* at, const char* end);
  using AddNestFunction = const char* (ElementWriter::*)(const char* at, const char* end,
                                                         NumberNest* nest);

  ElementWriter(tensor::DType dtype, uint64_t elements_max)
      : dtype_(dtype), elements_max_(elements_max) {}

  static AddFunction AddFunctionOf(tensor::DType dtype);
  static AddNestFunction AddNestFunctionOf(tensor::DType dtype);
  template <typename T>
  const char* AddNestOf(const char* at, const char* end, NumberNest* nest);
  template <typename T>
  const char* AddReal(const char* at, const char* end);
  template <uint16_t (*ToBits)(double)>
  const char* AddShortReal(const char* at, const char* end);
  template <typename T>
  const char* AddInteger(const char* at, const char* end);
  const char* AddBool(const char* at, const char* end);
  const char* AddString(const char* at, const char* end);
  const char* AddBase64(const char* at, const char* end);
  const char* AddNothing(const char* at, const char* end);
  const char* Refuse(Problem problem);
  template <typename T>
  void Store(T value);

  tensor::DType dtype_;
  uint64_t elements_max_;
  AddFunction add_ = nullptr;
  AddNestFunction add_nest_ = nullptr;
  Problem problem_ = Problem::kNone;
  uint64_t elements_ = 0;
  tensor::Buffer fixed_;                // Elements of a fixed-width dtype.
  std::string payload_;                 // All strings, one after the other.
  std::vector<uint64_t> string_sizes_;  // One a string.
};

}  // namespace tensord::wire
