// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/string_layout.h"
#include "tensor/tensor.h"

// Rows are slices along dim 0: cutting a batch's tensors into its calls', and joining pieces.
namespace tensord::sched {

// Tensors with whoever owns their bytes.
struct OwnedViews {
  std::vector<tensor::TensorView> tensors;
  std::shared_ptr<const void> keep;
};

// Cuts tensors of one batch into runs of rows. Fixed-width slices are views; strings are packed
// again, because their packed form starts with a table of offsets.
// Lifetime: the span of tensors outlives the cutter, their bytes stay with `owner`.
class RowCutter {
 public:
  // FAILED_PRECONDITION, in the original's words, when a tensor has no leading dim of `rows`;
  // INTERNAL when its packed form is broken. REQUIRES: rows >= 1.
  static absl::StatusOr<RowCutter> Open(std::span<const tensor::TensorView> tensors,
                                        std::shared_ptr<const void> owner, int64_t rows);

  // REQUIRES: first >= 0, count >= 0, first + count <= rows.
  OwnedViews Cut(int64_t first, int64_t count) const;

 private:
  RowCutter(std::span<const tensor::TensorView> tensors, std::shared_ptr<const void> owner,
            int64_t rows)
      : tensors_(tensors), owner_(std::move(owner)), rows_(rows) {}

  std::span<const tensor::TensorView> tensors_;
  std::shared_ptr<const void> owner_;
  int64_t rows_;
  std::vector<std::optional<tensor::StringReader>> strings_;  // Empty when there are none.
};

// Joins pieces along dim 0: pieces[p][t] is piece p of tensor t.
// FAILED_PRECONDITION when pieces of a tensor differ in dtype, or in a dim but the first, or have
// none; INTERNAL when a packed form is broken. REQUIRES: at least one piece, all with equally many
// tensors.
absl::StatusOr<OwnedViews> JoinRows(std::span<const OwnedViews> pieces);

}  // namespace tensord::sched
