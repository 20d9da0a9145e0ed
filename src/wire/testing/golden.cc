// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/testing/golden.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>

#include "base/text.h"
#include "wire/testing/tensors.h"

namespace tensord::wire::testing {
namespace {

using tensor::DType;

std::string Quote(std::string_view value) {
  std::string out = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    char text[8];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n' || c == '\t') {
      out += c == '\n' ? "\\n" : "\\t";
    } else if (byte < 0x20 || byte >= 0x7f) {
      std::snprintf(text, sizeof(text), "\\x%02x", byte);
      out += text;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// Takes one quoted string from the front of *text.
std::string Unquote(std::string_view* text) {
  std::string out;
  size_t i = 1;
  for (; i < text->size() && (*text)[i] != '"'; ++i) {
    if ((*text)[i] != '\\') {
      out += (*text)[i];
      continue;
    }
    const char c = (*text)[++i];
    if (c == 'x') {
      out +=
          static_cast<char>(std::strtoul(std::string(text->substr(i + 1, 2)).c_str(), nullptr, 16));
      i += 2;
    } else {
      out += c == 'n' ? '\n' : c == 't' ? '\t' : c;
    }
  }
  text->remove_prefix(std::min(i + 1, text->size()));
  return out;
}

// Takes one word from the front of *text.
std::string_view TakeWord(std::string_view* text) {
  const size_t begin = std::min(text->find_first_not_of(' '), text->size());
  text->remove_prefix(begin);
  const size_t size = std::min(text->find(' '), text->size());
  const std::string_view word = text->substr(0, size);
  text->remove_prefix(size);
  return word;
}

std::string RealText(double value, int digits) {
  if (std::isnan(value)) return "nan";
  char text[40];
  std::snprintf(text, sizeof(text), "%.*g", digits, value);
  return text;
}

std::string HexText(uint16_t value) {
  char text[8];
  std::snprintf(text, sizeof(text), "0x%04x", value);
  return text;
}

template <typename T, typename Format>
std::string Join(const tensor::TensorView& tensor, Format format) {
  std::string out;
  for (const T value : ValuesOf<T>(tensor)) out += " " + format(value);
  return out;
}

template <typename T>
std::string Integers(const tensor::TensorView& tensor) {
  return Join<T>(tensor, [](T value) { return std::to_string(value); });
}

std::string ValuesText(const tensor::TensorView& tensor) {
  switch (tensor.dtype) {
    case DType::kFloat:
      return Join<float>(tensor, [](float v) { return RealText(static_cast<double>(v), 9); });
    case DType::kDouble:
      return Join<double>(tensor, [](double v) { return RealText(v, 17); });
    case DType::kHalf:
    case DType::kBfloat16:
      return Join<uint16_t>(tensor, HexText);
    case DType::kInt8:
      return Integers<int8_t>(tensor);
    case DType::kInt16:
      return Integers<int16_t>(tensor);
    case DType::kUint16:
      return Integers<uint16_t>(tensor);
    case DType::kInt32:
      return Integers<int32_t>(tensor);
    case DType::kUint32:
      return Integers<uint32_t>(tensor);
    case DType::kInt64:
      return Integers<int64_t>(tensor);
    case DType::kUint64:
      return Integers<uint64_t>(tensor);
    default:
      return Integers<uint8_t>(tensor);
  }
}

template <typename T, typename Parse>
tensor::Tensor Numbers(DType dtype, tensor::Shape shape, std::string_view text, Parse parse) {
  std::vector<T> values;
  for (std::string_view word = TakeWord(&text); !word.empty(); word = TakeWord(&text)) {
    values.push_back(static_cast<T>(parse(std::string(word).c_str())));
  }
  return MakeTensor<T>(dtype, shape, values);
}

tensor::Shape ShapeFromText(std::string_view text) {
  std::vector<int64_t> dims;
  for (size_t i = 1; i < text.size() && text[i] != ']';) {
    char* end = nullptr;
    dims.push_back(std::strtoll(text.data() + i, &end, 10));
    i = static_cast<size_t>(end - text.data());
    if (text[i] == ',') ++i;
  }
  return *tensor::Shape::Make(dims);
}

}  // namespace

std::string_view GoldenCase::Find(std::string_view word) const {
  for (const GoldenLine& line : lines) {
    if (line.word == word) return line.rest;
  }
  return {};
}

std::vector<std::string> ReadGoldenLines(std::string_view file) {
  std::ifstream in(base::Cat(TENSORD_GOLDEN_DIR, "/", file), std::ios::binary);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line[0] != '#') lines.push_back(line);
  }
  return lines;
}

std::vector<GoldenCase> ReadGoldenCases(std::string_view file) {
  std::vector<GoldenCase> cases;
  bool in_expect = false;
  for (const std::string& line : ReadGoldenLines(file)) {
    const size_t space = std::min(line.find(' '), line.size());
    const std::string word = line.substr(0, space);
    const std::string rest = space < line.size() ? line.substr(space + 1) : "";
    if (in_expect) {
      in_expect = line != "end";
      if (in_expect) cases.back().expect += (cases.back().expect.empty() ? "" : "\n") + line;
    } else if (word == "case") {
      cases.push_back({rest, {}, {}});
    } else if (!cases.empty()) {
      in_expect = word == "expect";
      cases.back().lines.push_back({word, rest});
    }
  }
  return cases;
}

DType DTypeFromName(std::string_view name) {
  for (int32_t i = 1; i <= static_cast<int32_t>(DType::kUint64); ++i) {
    if (tensor::DTypeName(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  }
  return DType::kInvalid;
}

std::string ToText(const tensor::TensorView& tensor) {
  std::string out = tensor.shape.ToString();
  if (tensor.dtype != DType::kString) return out + ValuesText(tensor);
  for (const std::string& value : StringsOf(tensor)) out += " " + Quote(value);
  return out;
}

tensor::Tensor FromText(DType dtype, std::string_view text) {
  const tensor::Shape shape = ShapeFromText(TakeWord(&text));
  const auto real = [](const char* word) { return std::strtod(word, nullptr); };
  const auto whole = [](const char* word) { return std::strtoll(word, nullptr, 0); };
  const auto natural = [](const char* word) { return std::strtoull(word, nullptr, 0); };
  switch (dtype) {
    case DType::kFloat:
    case DType::kComplex64:
      return Numbers<float>(dtype, shape, text, real);
    case DType::kDouble:
      return Numbers<double>(dtype, shape, text, real);
    case DType::kInt8:
    case DType::kUint8:
    case DType::kBool:
      return Numbers<uint8_t>(dtype, shape, text, whole);
    case DType::kInt16:
    case DType::kUint16:
    case DType::kHalf:
    case DType::kBfloat16:
      return Numbers<uint16_t>(dtype, shape, text, whole);
    case DType::kInt32:
    case DType::kUint32:
      return Numbers<uint32_t>(dtype, shape, text, whole);
    case DType::kString: {
      std::vector<std::string> values;
      while (text.find('"') != std::string_view::npos) {
        text.remove_prefix(text.find('"'));
        values.push_back(Unquote(&text));
      }
      return MakeStrings(shape, values);
    }
    default:
      return text.find('-') == std::string_view::npos
                 ? Numbers<uint64_t>(dtype, shape, text, natural)
                 : Numbers<int64_t>(dtype, shape, text, whole);
  }
}

}  // namespace tensord::wire::testing
