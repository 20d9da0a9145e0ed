// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/mix.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/ascii.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "bench/arrivals.h"

namespace tensord::bench {
namespace {

absl::Status Wrong(std::string_view what, std::string_view expected) {
  return absl::InvalidArgumentError(base::Cat("'", what, "': ", expected));
}

std::optional<double> Number(std::string_view text) {
  double value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

// The next word, taken off the front.
std::string_view NextWord(std::string_view* text) {
  constexpr std::string_view kSpace = " \t\r";
  text->remove_prefix(std::min(text->find_first_not_of(kSpace), text->size()));
  const size_t size = std::min(text->find_first_of(kSpace), text->size());
  const std::string_view word = text->substr(0, size);
  text->remove_prefix(size);
  return word;
}

absl::Status ParseHead(std::string_view word, MixEntry* entry) {
  const size_t equals = word.find('=');
  entry->name = word.substr(0, equals);
  if (entry->name.empty()) return Wrong(word, "begin with a name: NAME=WEIGHT:FILE");
  if (equals == std::string_view::npos) return absl::OkStatus();
  const std::string_view rest = word.substr(equals + 1);
  const size_t colon = rest.find(':');
  const std::optional<double> weight = Number(rest.substr(0, colon));
  if (!weight.has_value() || *weight < 0) {
    return Wrong(word, "the weight behind '=' must be a number of at least 0: NAME=WEIGHT:FILE");
  }
  entry->weight = *weight;
  if (colon != std::string_view::npos) entry->file = rest.substr(colon + 1);
  return absl::OkStatus();
}

absl::Status ParseSetting(std::string_view word, MixEntry* entry) {
  const size_t equals = word.find('=');
  const std::string_view key = word.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? "" : word.substr(equals + 1);
  if (value.empty()) return Wrong(word, "write key=value");
  if (key == "model") {
    entry->model = value;
  } else if (key == "signature") {
    entry->signature = value;
  } else if (key == "path") {
    entry->path = value;
  } else if (key == "criticality") {
    entry->criticality = value;
  } else if (key == "input") {
    entry->inputs.emplace_back(value);
  } else if (key == "header") {
    ASSIGN_OR_RETURN(auto header, ParseHeader(value));
    entry->headers.push_back(std::move(header));
  } else if (key == "method") {
    if (value != "predict" && value != "classify" && value != "regress") {
      return Wrong(word, "the method is predict, classify or regress");
    }
    entry->method = value;
  } else if (key == "deadline_ms") {
    const std::optional<double> milliseconds = Number(value);
    if (!milliseconds.has_value() || *milliseconds <= 0) {
      return Wrong(word, "a deadline is a number of milliseconds above 0");
    }
    entry->deadline = absl::Milliseconds(*milliseconds);
  } else {
    return Wrong(word,
                 "no such key; there are model, signature, method, input, path, deadline_ms, "
                 "criticality and header");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MixEntry> ParseMixEntry(std::string_view text) {
  MixEntry entry;
  RETURN_IF_ERROR(ParseHead(NextWord(&text), &entry));
  for (std::string_view word; !(word = NextWord(&text)).empty();) {
    RETURN_IF_ERROR(ParseSetting(word, &entry));
  }
  return entry;
}

absl::StatusOr<std::vector<MixEntry>> ParseMixText(std::string_view text) {
  std::vector<MixEntry> entries;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    std::string_view words = line;
    const std::string_view first = NextWord(&words);
    if (first.empty() || first.starts_with('#')) continue;
    absl::StatusOr<MixEntry> entry = ParseMixEntry(line);
    if (!entry.ok()) {
      return base::WithContext(entry.status(), base::Cat("line ", number, ": "));
    }
    entries.push_back(*std::move(entry));
  }
  return entries;
}

absl::StatusOr<std::pair<std::string, std::string>> ParseHeader(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0) {
    return Wrong(text, "a header is written name:value");
  }
  std::string name(text.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(), base::ToLower);
  std::string_view value = text.substr(colon + 1);
  while (value.starts_with(' ')) value.remove_prefix(1);
  constexpr std::string_view kForbidden("\r\n\0", 3);
  if (name.find_first_of(" \t\r\n") != std::string::npos ||
      value.find_first_of(kForbidden) != std::string_view::npos) {
    return Wrong(text, "a header has no spaces in its name and no line ends");
  }
  return std::pair(std::move(name), std::string(value));
}

std::vector<double> ZipfWeights(size_t count, double exponent) {
  std::vector<double> weights;
  for (size_t rank = 1; rank <= count; ++rank) {
    weights.push_back(std::pow(static_cast<double>(rank), -exponent));
  }
  return weights;
}

Choice::Choice(const std::vector<double>& weights) {
  double sum = 0;
  for (const double weight : weights) up_to_.push_back(sum += weight);
}

size_t Choice::Draw(std::mt19937_64& random) const {
  if (up_to_.size() == 1) return 0;
  const double at = Uniform(random) * up_to_.back();
  const auto found = std::upper_bound(up_to_.begin(), up_to_.end(), at);
  return static_cast<size_t>(std::min(found, up_to_.end() - 1) - up_to_.begin());
}

}  // namespace tensord::bench
