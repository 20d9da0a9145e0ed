// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/json/list_reader.h"

#include "base/status_macros.h"
#include "base/text.h"

namespace tensord::wire {

using Problem = ElementWriter::Problem;

std::string ListReader::path() const {
  std::string path;
  for (int i = 0; i < level_; ++i) path += base::Cat("[", counts_[static_cast<size_t>(i)], "]");
  return path;
}

absl::StatusOr<tensor::Shape> ListReader::Read() {
  NumberNest nest;
  if (const char* after = writer_.AddNest(cursor_.at(), cursor_.end(), &nest); after != nullptr) {
    cursor_.MoveTo(after);
    elements_ = nest.elements;
    was_nest_ = true;
    return tensor::Shape::Make({nest.dims.data(), static_cast<size_t>(nest.rank)});
  }
  if (take_ == Take::kNestsStrictly && cursor_.Peek() == '[') {
    return absl::InvalidArgumentError("not a regular nest of numbers");
  }
  while (true) {
    if (cursor_.Peek() == '[') {
      RETURN_IF_ERROR(OpenList());
      cursor_.SkipSpace();
      if (!cursor_.Take(']')) continue;
      RETURN_IF_ERROR(CloseList());
    } else {
      RETURN_IF_ERROR(AddLeaf());
    }
    // A value has ended: to the next one, or out of every list that ends here.
    while (true) {
      if (level_ == 0) return tensor::Shape::Make({dims_.data(), static_cast<size_t>(rank_)});
      ++counts_[static_cast<size_t>(level_ - 1)];
      cursor_.SkipSpace();
      if (cursor_.Take(',')) break;
      cursor_.Take(']');
      RETURN_IF_ERROR(CloseList());
    }
    cursor_.SkipSpace();
  }
}

absl::Status ListReader::OpenList() {
  if (rank_ >= 0 && level_ >= rank_) {
    RETURN_IF_ERROR(OpenListsError());
    return absl::InvalidArgumentError(
        base::Cat("Encountered list at unexpected level: ", level_, " expected < ", rank_));
  }
  if (level_ == limits::kRankMax) {
    return absl::InvalidArgumentError(base::Cat("Encountered list at unexpected level: ", level_,
                                                "; a tensor has at most ", limits::kRankMax,
                                                " dimensions"));
  }
  cursor_.Take('[');
  counts_[static_cast<size_t>(level_)] = 0;
  ++level_;
  return absl::OkStatus();
}

absl::Status ListReader::CloseList() {
  --level_;
  const auto level = static_cast<size_t>(level_);
  const uint64_t size = counts_[level];
  if (!known_[level]) {
    known_[level] = true;
    dims_[level] = static_cast<int64_t>(size);
    if (rank_ < 0) rank_ = level_ + 1;  // An empty list is as deep as its tensor goes.
    return absl::OkStatus();
  }
  return size == static_cast<uint64_t>(dims_[level]) ? absl::OkStatus() : SizeError(level_, size);
}

absl::Status ListReader::AddLeaf() {
  if (rank_ < 0) rank_ = level_;
  if (level_ != rank_) {
    RETURN_IF_ERROR(OpenListsError());
    return LeafError();
  }
  if (writer_.elements() == writer_.elements_max()) {
    RETURN_IF_ERROR(cursor_.ReadValue().status());
  } else {
    const char* const after = writer_.Add(cursor_.at(), cursor_.end());
    if (after == nullptr) {
      RETURN_IF_ERROR(OpenListsError());
      return LeafError();
    }
    cursor_.MoveTo(after);
  }
  ++elements_;
  return absl::OkStatus();
}

absl::Status ListReader::LeafError() const {
  JsonCursor ahead = cursor_;
  ASSIGN_OR_RETURN(const JsonValue value, ahead.ReadValue());
  const std::string text = base::Cat("JSON Value: ", JsonExcerpt(value.text));
  if (level_ != rank_) {
    return absl::InvalidArgumentError(base::Cat(text, " found at incorrect level: ", level_ + 1,
                                                " in the JSON DOM. Expected at level: ", rank_));
  }
  const std::string_view dtype = tensor::DTypeName(writer_.dtype());
  switch (writer_.problem()) {
    case Problem::kBase64:
      return absl::InvalidArgumentError("Unable to base64 decode");
    case Problem::kBase64Object:
      return absl::InvalidArgumentError(
          base::Cat(text, " not formatted correctly for base64 data"));
    case Problem::kUnimplemented:
      return absl::UnimplementedError(base::Cat("Conversion of ", text, " to type: ", dtype));
    case Problem::kRange:
      return absl::InvalidArgumentError(base::Cat(
          text, " Type: Number is not of expected type: ", dtype, ": it is out of range"));
    default:
      return absl::InvalidArgumentError(base::Cat(text, " Type: ", JsonKindName(value.kind),
                                                  " is not of expected type: ", dtype));
  }
}

absl::Status ListReader::SizeError(int level, uint64_t size) const {
  return absl::InvalidArgumentError(
      base::Cat("Encountered list at unexpected size: ", size, " at level: ", level,
                " expected size: ", dims_[static_cast<size_t>(level)]));
}

// The original knows a list's size before it looks inside, so a list of the wrong size is reported
// rather than what is wrong inside it. Here, sizes of open lists are looked up only on an error.
absl::Status ListReader::OpenListsError() const {
  JsonCursor ahead = cursor_;
  absl::Status outermost;
  for (int level = level_ - 1; level >= 0; --level) {
    const auto i = static_cast<size_t>(level);
    uint64_t size = counts_[i];
    // On the innermost level the cursor stands at a value, further out behind one.
    if (level == level_ - 1) {
      RETURN_IF_ERROR(ahead.ReadValue().status());
    }
    ++size;
    ahead.SkipSpace();
    while (ahead.Take(',')) {
      ahead.SkipSpace();
      RETURN_IF_ERROR(ahead.ReadValue().status());
      ahead.SkipSpace();
      ++size;
    }
    ahead.Take(']');
    if (known_[i] && size != static_cast<uint64_t>(dims_[i])) outermost = SizeError(level, size);
  }
  return outermost;
}

}  // namespace tensord::wire
