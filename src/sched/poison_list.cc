// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "sched/poison_list.h"

#include <algorithm>

#include "absl/hash/hash.h"
#include "absl/types/span.h"
#include "base/sched_limits.h"

namespace tensord::sched {
namespace {

uint64_t BytesOf(const Call& call) {
  uint64_t bytes = 0;
  for (const tensor::TensorView& input : call.inputs) bytes += input.bytes.size();
  return bytes;
}

// Abseil's hash has another seed in each process: nobody can make a call that looks like another's.
uint64_t HashOf(const Call& call) {
  uint64_t hash = 0;
  for (const tensor::TensorView& input : call.inputs) {
    hash = absl::HashOf(hash, static_cast<int>(input.dtype));
    for (const int64_t dim : input.shape.dims()) hash = absl::HashOf(hash, dim);
    const absl::Span<const char> bytes(reinterpret_cast<const char*>(input.bytes.data()),
                                       input.bytes.size());
    hash = absl::HashOf(hash, bytes);
  }
  return hash;
}

// What has been quiet for so long is forgotten.
constexpr int kForgottenAfter = 10;  // Times kPoisonKept.

}  // namespace

std::vector<PoisonList::Entry>::const_iterator PoisonList::At(const Call& call) const {
  if (entries_.empty()) return entries_.end();
  const uint64_t bytes = BytesOf(call);
  const auto alike = [&](const Entry& entry) {
    return entry.signature == call.signature && entry.bytes == bytes;
  };
  if (std::ranges::none_of(entries_, alike)) return entries_.end();
  const uint64_t hash = HashOf(call);
  return std::ranges::find_if(
      entries_, [&](const Entry& entry) { return alike(entry) && entry.hash == hash; });
}

PoisonList::Standing PoisonList::Find(const Call& call, absl::Time now) const {
  const auto at = At(call);
  if (at == entries_.end()) return Standing::kClean;
  const absl::Duration age = now - at->last;
  if (age >= kForgottenAfter * limits::kPoisonKept) return Standing::kClean;
  if (at->poison && age < limits::kPoisonKept) return Standing::kPoison;
  return at->suspect ? Standing::kSuspect : Standing::kNoted;
}

PoisonList::Entry PoisonList::Take(const Call& call, absl::Time now) {
  const auto at = At(call);
  Entry entry;
  entry.signature = call.signature;
  entry.bytes = BytesOf(call);
  entry.hash = HashOf(call);
  if (at != entries_.end()) {
    if (now - at->last < kForgottenAfter * limits::kPoisonKept) entry = *at;
    entries_.erase(at);
  }
  ++entry.deaths;
  entry.last = now;
  return entry;
}

// The oldest makes room, those that are only noted first.
void PoisonList::Add(const Entry& entry) {
  if (entries_.size() >= limits::kPoisonsMax) {
    const auto noted = std::ranges::find_if(entries_, [](const Entry& e) { return !e.suspect; });
    if (noted == entries_.end() && !entry.suspect) return;
    entries_.erase(noted == entries_.end() ? entries_.begin() : noted);
  }
  entries_.push_back(entry);
}

void PoisonList::NoteCrash(const Call& call, bool alone, absl::Time now) {
  Entry entry = Take(call, now);
  entry.poison = entry.poison || (entry.suspect && alone);
  entry.suspect = true;
  Add(entry);
}

void PoisonList::NoteDeath(const Call& call, bool alone, absl::Time now) {
  Entry entry = Take(call, now);
  entry.poison =
      entry.poison || (entry.suspect && alone && entry.deaths >= limits::kUnexplainedDeathsMax);
  entry.suspect = entry.suspect || entry.deaths > 1;
  Add(entry);
}

void PoisonList::Clear(const Call& call) {
  const auto at = At(call);
  if (at != entries_.end()) entries_.erase(at);
}

}  // namespace tensord::sched
