// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/row_probe.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "worker/warm_up.h"

namespace tensord::worker {
namespace {

using tensor::DType;
using Bytes = std::vector<std::byte>;

constexpr size_t kRows = 4;
// What other batch sizes may round differently, of the largest value in the row.
constexpr double kTolerance = 1e-4;
constexpr double kHalfTolerance = 3e-2;  // For 16-bit floats.

// One row of every input.
using Row = std::vector<Bytes>;
// One row of every output.
struct Answer {
  std::vector<DType> dtypes;
  std::vector<Bytes> rows;
};

template <typename T>
void Put(T value, Bytes* out) {
  const auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
  out->insert(out->end(), bytes.begin(), bytes.end());
}

// The upper half of a float: bfloat16. IEEE half has another form: 1 + fraction below 2 is enough.
void PutHalf(DType dtype, float value, Bytes* out) {
  if (dtype == DType::kBfloat16) {
    return Put(static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16), out);
  }
  const auto fraction = static_cast<uint16_t>(std::abs(value) / 2 * 1023);
  Put(static_cast<uint16_t>((value < 0 ? 0x8000 : 0) | 0x3c00 | fraction), out);
}

// Random values that most models take: numbers near 1, and small indices for what may be one.
// False for types that have no such values.
bool PutRandom(DType dtype, std::mt19937* random, bool positive, Bytes* out) {
  const float real = std::uniform_real_distribution<float>(positive ? 0.1f : -2.0f, 2.0f)(*random);
  const auto bit = static_cast<uint8_t>((*random)() % 2);
  switch (dtype) {
    case DType::kFloat:
      Put(real, out);
      return true;
    case DType::kDouble:
      Put(static_cast<double>(real), out);
      return true;
    case DType::kHalf:
    case DType::kBfloat16:
      PutHalf(dtype, real, out);
      return true;
    case DType::kBool:
    case DType::kInt8:
      Put(bit, out);
      return true;
    case DType::kUint8:
      Put(static_cast<uint8_t>((*random)() % 256), out);
      return true;
    case DType::kInt16:
    case DType::kUint16:
      Put(static_cast<uint16_t>(bit), out);
      return true;
    case DType::kInt32:
    case DType::kUint32:
      Put(static_cast<uint32_t>(bit), out);
      return true;
    case DType::kInt64:
    case DType::kUint64:
      Put(static_cast<uint64_t>(bit), out);
      return true;
    default:
      return false;
  }
}

absl::StatusOr<Row> RandomRow(const tensor::Signature& signature,
                              std::span<const tensor::Shape> shapes, std::mt19937* random,
                              bool positive) {
  Row row;
  for (size_t i = 0; i < shapes.size(); ++i) {
    Bytes& bytes = row.emplace_back();
    for (int64_t n = 0; n < shapes[i].elements(); ++n) {
      if (PutRandom(signature.inputs[i].dtype, random, positive, &bytes)) continue;
      return absl::UnimplementedError(base::Cat("inputs of type ",
                                                tensor::DTypeName(signature.inputs[i].dtype),
                                                " cannot be tried with made-up values"));
    }
  }
  return row;
}

std::vector<double> Reals(DType dtype, const Bytes& bytes) {
  std::vector<double> reals;
  const auto each = [&]<typename T>(T, auto to_double) {
    for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
      T value;
      std::memcpy(&value, bytes.data() + at, sizeof(T));
      reals.push_back(to_double(value));
    }
  };
  if (dtype == DType::kFloat) each(float{}, [](float v) { return double{v}; });
  if (dtype == DType::kDouble) each(double{}, [](double v) { return v; });
  if (dtype == DType::kBfloat16) {
    each(uint16_t{},
         [](uint16_t v) { return double{std::bit_cast<float>(static_cast<uint32_t>(v) << 16)}; });
  }
  if (dtype == DType::kHalf) {
    each(uint16_t{}, [](uint16_t v) {
      const int exponent = (v >> 10) & 31;
      const double fraction = v & 1023;
      const double size = exponent == 31  ? HUGE_VAL
                          : exponent == 0 ? std::ldexp(fraction, -24)
                                          : std::ldexp(fraction + 1024, exponent - 25);
      return (v & 0x8000) != 0 ? -size : size;
    });
  }
  return reals;
}

bool Finite(const Answer& answer) {
  for (size_t i = 0; i < answer.rows.size(); ++i) {
    for (const double real : Reals(answer.dtypes[i], answer.rows[i])) {
      if (!std::isfinite(real)) return false;
    }
  }
  return true;
}

bool AllAlike(const std::vector<Answer>& answers) {
  return std::ranges::all_of(
      answers, [&](const Answer& answer) { return answer.rows == answers.front().rows; });
}

bool SameRow(DType dtype, const Bytes& a, const Bytes& b) {
  if (a.size() != b.size()) return false;
  const std::vector<double> left = Reals(dtype, a);
  const std::vector<double> right = Reals(dtype, b);
  if (left.empty()) return a == b;
  double largest = 0;
  for (const double real : left) largest = std::max(largest, std::abs(real));
  const bool half = dtype == DType::kHalf || dtype == DType::kBfloat16;
  const double most = largest * (half ? kHalfTolerance : kTolerance);
  for (size_t i = 0; i < left.size(); ++i) {
    if (!(std::abs(left[i] - right[i]) <= most)) return false;
  }
  return true;
}

bool Same(const Answer& a, const Answer& b) {
  for (size_t i = 0; i < a.rows.size(); ++i) {
    if (a.dtypes[i] != b.dtypes[i] || !SameRow(a.dtypes[i], a.rows[i], b.rows[i])) return false;
  }
  return a.rows.size() == b.rows.size();
}

class Probe {
 public:
  Probe(engine::Model& model, size_t signature, std::vector<tensor::Tensor>* kept)
      : model_(model), number_(signature), signature_(model.signatures()[signature]), kept_(kept) {}

  std::string Why() {
    std::string why;
    // Numbers that are none (a logarithm of something negative) tell nothing: once more without.
    for (const bool positive : {false, true}) {
      const absl::StatusOr<bool> finite = Try(positive, &why);
      if (!finite.ok()) return std::string(base::Message(finite.status()));
      if (*finite) return why;
    }
    return "made-up values do not lead to finite numbers";
  }

 private:
  // False when some output is not finite; else `why` has the finding.
  absl::StatusOr<bool> Try(bool positive, std::string* why) {
    ASSIGN_OR_RETURN(const std::vector<tensor::Shape> shapes, WarmUpShapes(signature_, 1));
    std::mt19937 random(20261130);  // The same each time: a load must not turn out by chance.
    std::vector<Row> rows;
    std::vector<Answer> alone;
    for (size_t i = 0; i < kRows; ++i) {
      ASSIGN_OR_RETURN(Row row, RandomRow(signature_, shapes, &random, positive));
      rows.push_back(std::move(row));
      ASSIGN_OR_RETURN(std::vector<Answer> answer, Run(std::span(&rows.back(), 1), shapes));
      if (!Finite(answer.front())) return false;
      alone.push_back(std::move(answer.front()));
    }
    if (AllAlike(alone)) {
      *why = "made-up rows all have the same outputs, which tells nothing";
      return true;
    }
    std::vector<size_t> order(kRows);
    std::iota(order.begin(), order.end(), size_t{0});
    for (int turn = 0; turn < 2 && why->empty(); ++turn) {
      RETURN_IF_ERROR(Together(rows, alone, order, shapes, why));
      std::reverse(order.begin(), order.end());
    }
    return true;
  }

  absl::Status Together(const std::vector<Row>& rows, const std::vector<Answer>& alone,
                        const std::vector<size_t>& order, std::span<const tensor::Shape> shapes,
                        std::string* why) {
    std::vector<Row> batch;
    batch.reserve(order.size());
    for (const size_t i : order) batch.push_back(rows[i]);
    ASSIGN_OR_RETURN(const std::vector<Answer> answers, Run(batch, shapes));
    for (size_t i = 0; i < order.size(); ++i) {
      if (Same(answers[i], alone[order[i]])) continue;
      *why = "a row's outputs depend on the other rows of its batch";
      break;
    }
    return absl::OkStatus();
  }

  // One answer a row.
  absl::StatusOr<std::vector<Answer>> Run(std::span<const Row> rows,
                                          std::span<const tensor::Shape> shapes) {
    std::vector<tensor::Tensor> inputs;
    std::vector<tensor::TensorView> views;
    for (size_t i = 0; i < shapes.size(); ++i) {
      std::vector<int64_t> dims(shapes[i].dims().begin(), shapes[i].dims().end());
      dims.front() = static_cast<int64_t>(rows.size());
      ASSIGN_OR_RETURN(const tensor::Shape shape, tensor::Shape::Make(dims));
      const size_t row_bytes = rows.front()[i].size();
      tensor::Tensor input{.dtype = signature_.inputs[i].dtype,
                           .shape = shape,
                           .buffer = tensor::Buffer(row_bytes * rows.size())};
      for (size_t r = 0; r < rows.size(); ++r) {
        std::ranges::copy(rows[r][i],
                          input.buffer.bytes().begin() + static_cast<ptrdiff_t>(r * row_bytes));
      }
      inputs.push_back(std::move(input));
      views.push_back(inputs.back().view());
    }
    const std::unique_ptr<engine::Result> result = model_.Run(static_cast<int>(number_), views);
    absl::StatusOr<std::vector<Answer>> answers = Split(*result, rows.size());
    result->Release();
    if (result->HoldsInputs()) std::ranges::move(inputs, std::back_inserter(*kept_));
    return answers;
  }

  static absl::StatusOr<std::vector<Answer>> Split(const engine::Result& result, size_t rows) {
    RETURN_IF_ERROR(result.status());
    std::vector<Answer> answers(rows);
    for (size_t i = 0; i < result.outputs().size(); ++i) {
      const engine::OutputInfo& output = result.outputs()[i];
      const std::span<const int64_t> dims = output.shape.dims();
      if (dims.empty() || dims.front() != static_cast<int64_t>(rows)) {
        return absl::FailedPreconditionError("an output does not have the rows of the inputs");
      }
      if (output.dtype == DType::kString) {
        return absl::UnimplementedError("outputs of strings are not compared");
      }
      Bytes all(output.bytes);
      result.Pack(i, all);
      const size_t row_bytes = all.size() / rows;
      for (size_t r = 0; r < rows; ++r) {
        const auto from = all.begin() + static_cast<ptrdiff_t>(r * row_bytes);
        answers[r].dtypes.push_back(output.dtype);
        answers[r].rows.emplace_back(from, from + static_cast<ptrdiff_t>(row_bytes));
      }
    }
    return answers;
  }

  engine::Model& model_;
  const size_t number_;
  const tensor::Signature& signature_;
  std::vector<tensor::Tensor>* const kept_;
};

}  // namespace

std::string WhyRowsDepend(engine::Model& model, size_t signature,
                          std::vector<tensor::Tensor>* kept) {
  const tensor::Signature& of = model.signatures()[signature];
  const auto has_rows = [](const tensor::Endpoint& endpoint) {
    return endpoint.dense && !endpoint.shape.unknown_rank && !endpoint.shape.dims.empty() &&
           endpoint.shape.dims.front() < 0;
  };
  if (of.inputs.empty() || !std::ranges::all_of(of.inputs, has_rows) ||
      !std::ranges::all_of(of.outputs, has_rows)) {
    return "not all inputs and outputs have an open leading dim";
  }
  return Probe(model, signature, kept).Why();
}

}  // namespace tensord::worker
