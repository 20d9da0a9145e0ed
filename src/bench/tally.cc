// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/tally.h"

#include <array>

#include "base/text.h"

namespace tensord::bench {
namespace {

constexpr size_t kWordsKept = 500;

constexpr std::array<std::string_view, 17> kGrpcNames = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

}  // namespace

void Tally::Merge(const Tally& other) {
  answered += other.answered;
  failed += other.failed;
  refused += other.refused;
  latency.Merge(other.latency);
  service.Merge(other.service);
  refusal.Merge(other.refusal);
  lateness.Merge(other.lateness);
  for (const auto& [code, error] : other.errors) {
    ErrorCount& mine = errors[code];
    if (mine.count == 0) mine.first_words = error.first_words;
    mine.count += error.count;
  }
  if (kinds.size() < other.kinds.size()) kinds.resize(other.kinds.size());
  for (size_t i = 0; i < other.kinds.size(); ++i) {
    kinds[i].answered += other.kinds[i].answered;
    kinds[i].failed += other.kinds[i].failed;
    kinds[i].latency.Merge(other.kinds[i].latency);
  }
}

void Tally::CountFailure(uint32_t kind, int code, std::string_view words) {
  ++failed;
  ++kinds[kind].failed;
  if (IsRefusal(code)) ++refused;
  ErrorCount& error = errors[code];
  if (error.count++ == 0) error.first_words = OneLine(words.substr(0, kWordsKept));
}

std::string OneLine(std::string_view words) {
  std::string line;
  for (const char c : words) {
    const bool space = c == ' ' || c == '\n' || c == '\r' || c == '\t';
    if (!space) line += c;
    if (space && !line.empty() && line.back() != ' ') line += ' ';
  }
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

bool IsRefusal(int code) { return code == 8 || code == 14 || code == 429 || code == 503; }

std::string CodeName(int code, bool rest) {
  switch (code) {
    case kConnectionLost:
      return "connection lost";
    case kDeadlinePassed:
      return "no answer by the deadline";
    case kLate:
      return "answered after the deadline";
    case kUnanswered:
      return "unanswered at the end";
    case kNotSent:
      return "not sent";
    default:
      break;
  }
  if (rest) return base::Cat("HTTP ", code);
  const auto index = static_cast<size_t>(code);
  return index < kGrpcNames.size() ? std::string(kGrpcNames[index]) : base::Cat("gRPC ", code);
}

}  // namespace tensord::bench
