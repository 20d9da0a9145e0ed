// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "sched/service_time.h"
#include "tensor/signature.h"

// How long runs take, kept from one life of the server to the next in --state_dir/run_times. A hint
// and no more: what the file says is clamped (ServiceTime::Seed), and the first real runs make
// little of it.
namespace tensord::serve {

// Of one model, version and signature: rows to time.
using RunTimeKey = std::tuple<std::string, int64_t, std::string>;
using RunTimeBook = std::map<RunTimeKey, std::map<int64_t, absl::Duration>>;

// Text of one line a size. Parse leaves out lines that are none, and gives nothing for a file that
// does not begin as ours do.
std::string PrintRunTimes(const RunTimeBook& book);
RunTimeBook ParseRunTimes(std::string_view text);

// What the book says of a version's signatures. Where `measured` now, while the version was warmed
// up, is something else altogether, the book is about another machine or model: then what was
// measured holds.
std::vector<sched::RunTimeHint> HintsFor(const RunTimeBook& book, const std::string& model,
                                         int64_t version, const tensor::SignatureList& signatures,
                                         std::span<const sched::RunTimeHint> measured);

// Blocks on the disk: for start-up, and for threads that serve nothing. A file that is not there is
// an empty book.
RunTimeBook ReadRunTimes(const std::string& directory);
// Whole or not at all.
absl::Status WriteRunTimes(const std::string& directory, const RunTimeBook& book);

}  // namespace tensord::serve
