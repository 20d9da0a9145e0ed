// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/local_source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "base/limits.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "models/check_models.h"

namespace tensord::models {
namespace {

using Names = std::map<int64_t, std::string, std::greater<>>;

constexpr absl::Duration kRacyTime = absl::Seconds(2);  // FAT's clock ticks so slowly.
constexpr size_t kSpareVersions = 16;  // Below the wanted ones, in case these fail.

absl::Status CannotList(const std::string& base_path, int error) {
  const std::string text = base::Cat("base path ", base_path, " ");
  if (error == ENOENT) return absl::NotFoundError(base::Cat(text, "does not exist"));
  if (error == ENOTDIR) return absl::NotFoundError(base::Cat(text, "is not a directory"));
  return absl::UnavailableError(base::Cat(text, "cannot be listed: ", std::strerror(error)));
}

bool SameTime(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

// Version directories by number. Of two names for one number the last in lexical order is taken, as
// the original does.
absl::StatusOr<Names> ListNames(int directory, const std::string& base_path, Listing* listing) {
  const int dup = fcntl(directory, F_DUPFD_CLOEXEC, 0);
  if (dup < 0) return CannotList(base_path, errno);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(dup), closedir);
  if (stream == nullptr) return CannotList(base_path, errno);
  rewinddir(stream.get());
  Names names;
  size_t count = 0;
  errno = 0;
  while (const dirent* entry = readdir(stream.get())) {
    if (++count > limits::kNamesListedMax) {
      listing->warnings.push_back(base::Cat("base path ", base_path, " holds more than ",
                                            limits::kNamesListedMax, " names; not all were read"));
      break;
    }
    int64_t number = 0;
    const std::string name(entry->d_name);
    if (!VersionNumber(name, &number)) continue;
    const auto [at, added] = names.try_emplace(number, name);
    if (added) continue;
    listing->warnings.push_back(base::Cat(
        "base path ", base_path, " holds both ", std::min(at->second, name), " and ",
        std::max(at->second, name), ", which are version ", number, "; the last one is taken"));
    at->second = std::max(at->second, name);
  }
  if (errno != 0 && count <= limits::kNamesListedMax) return CannotList(base_path, errno);
  std::ranges::sort(listing->warnings);
  return names;
}

bool IsDirectory(int base, const std::string& name) {
  struct stat found {};
  // What cannot be told is kept: the worker has the last word.
  return fstatat(base, name.c_str(), &found, 0) != 0 ? errno != ENOENT : S_ISDIR(found.st_mode);
}

// The versions that the policy may come to want.
std::set<int64_t> ToExamine(const Names& names, const SourceQuery& query) {
  std::set<int64_t> numbers;
  size_t left = limits::kVersionsExaminedMax;
  if (query.policy.kind == VersionPolicy::Kind::kLatest) {
    left = std::min(left, std::max<size_t>(query.policy.latest, 1) + kSpareVersions);
  }
  const std::vector<int64_t>& specific = query.policy.specific;
  for (const auto& [number, name] : names) {
    if (query.also.contains(number)) numbers.insert(number);
    if (query.policy.kind == VersionPolicy::Kind::kSpecific &&
        std::ranges::find(specific, number) == specific.end()) {
      continue;
    }
    if (left == 0) continue;
    --left;
    numbers.insert(number);
  }
  return numbers;
}

// Says which versions the policy names that are not there; none where that is already the error of
// the whole model (SourceStatus).
void WarnOfMissing(const SourceQuery& query, Listing* listing) {
  if (query.policy.kind != VersionPolicy::Kind::kSpecific) return;
  constexpr size_t kNamedMax = 10;
  std::vector<int64_t> missing;
  for (const int64_t wanted : query.policy.specific) {
    if (std::ranges::find(listing->versions, wanted, &FoundVersion::number) ==
        listing->versions.end()) {
      missing.push_back(wanted);
    }
  }
  if (missing.size() == query.policy.specific.size()) return;
  for (size_t i = 0; i < std::min(missing.size(), kNamedMax); ++i) {
    listing->warnings.push_back(base::Cat("version ", missing[i],
                                          ", which the version policy asks for, is not in ",
                                          query.base_path));
  }
}

}  // namespace

bool VersionNumber(std::string_view name, int64_t* number) {
  if (name.empty() || name.front() == '-') return false;
  const auto end = std::from_chars(name.data(), name.data() + name.size(), *number);
  return end.ec == std::errc() && end.ptr == name.data() + name.size();
}

absl::StatusOr<Listing> LocalSource::List(const SourceQuery& query) {
  const std::string path = LocalPath(query.base_path);
  if (!path.starts_with('/')) {
    return absl::UnimplementedError(
        base::Cat("base path ", query.base_path,
                  " is a URI of a kind that this server cannot read; copy the "
                  "model to a local directory or mount the store"));
  }
  if (paths_.size() > limits::kModelsMax && !paths_.contains(query.base_path)) paths_.clear();
  PathState& state = paths_[query.base_path];
  const base::UniqueFd directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat now {};
  if (!directory.valid() || fstat(directory.get(), &now) != 0) {
    const int error = errno;
    state = PathState();
    return CannotList(query.base_path, error);
  }
  if (Unchanged(state, query, now)) {
    ++state.looks;
    return state.listing;
  }
  Listing listing;
  ASSIGN_OR_RETURN(const Names names, ListNames(directory.get(), query.base_path, &listing));
  const std::set<int64_t> examine = ToExamine(names, query);
  std::map<std::string, Known> before = std::exchange(state.versions, {});
  for (const auto& [number, name] : names) {
    if (!IsDirectory(directory.get(), name)) {
      listing.warnings.push_back(base::Cat(path, "/", name, " is not a directory: ignored"));
      continue;
    }
    FoundVersion found{.number = number,
                       .directory = base::Cat(path, "/", name),
                       .reason = "not looked at: the version policy does not ask for it"};
    if (examine.contains(number)) {
      found = Examine(directory.get(), path, name, number, query, &before, &state);
      listing.unsettled |= !found.complete;
    }
    listing.versions.push_back(std::move(found));
  }
  WarnOfMissing(query, &listing);
  state.query = query;
  state.directory = now;
  state.looks = 0;
  state.listing = listing;
  return listing;
}

// Entries came and went only if the directory's own times changed, unless that was so short ago
// that its clock may not have ticked since.
bool LocalSource::Unchanged(const PathState& state, const SourceQuery& query,
                            const struct stat& now) const {
  SourceQuery same = query;
  same.renamed = state.query.renamed;
  return state.looks + 1 < limits::kFullScanEvery && !state.listing.unsettled && !query.closely &&
         query.renamed.empty() && same == state.query && now.st_ino == state.directory.st_ino &&
         now.st_dev == state.directory.st_dev && SameTime(now.st_mtim, state.directory.st_mtim) &&
         SameTime(now.st_ctim, state.directory.st_ctim) &&
         absl::TimeFromTimespec(now.st_mtim) + kRacyTime < options_.wall_time();
}

FoundVersion LocalSource::Examine(int directory, const std::string& base_path,
                                  const std::string& name, int64_t number, const SourceQuery& query,
                                  std::map<std::string, Known>* before, PathState* state) {
  FilesSeen files = LookAt(directory, name, query.tflite);
  const auto at = before->find(name);
  const bool first_look = at == before->end();
  Known known{.files = files, .since = options_.clock->Now()};
  if (!first_look && at->second.files.fingerprint == files.fingerprint) known = at->second;
  known.renamed |= query.renamed.contains(name);
  known.complete = known.complete || Settled(known, first_look);
  FoundVersion found{.number = number,
                     .directory = base::Cat(base_path, "/", name),
                     .complete = known.complete,
                     .reason = known.files.missing,
                     .bytes = files.bytes,
                     .fingerprint = files.fingerprint,
                     .warm_up_bytes = files.warm_up_bytes,
                     .tflite = files.tflite,
                     .batching_parameters = files.batching_parameters};
  if (known.complete) {
    found.reason.clear();
    found.doubt = files.doubt;
  }
  if (!known.complete && found.reason.empty()) {
    found.reason = files.doubt.empty() ? "its files may still be coming" : files.doubt;
  }
  state->versions[name] = std::move(known);
  return found;
}

bool LocalSource::Settled(const Known& known, bool first_look) const {
  constexpr int kDoubtFactor = 15;  // A doubt is given up when so many quiet times have passed.
  if (!known.files.missing.empty()) return false;
  const absl::Duration quiet =
      known.files.doubt.empty() ? options_.quiet : options_.quiet * kDoubtFactor;
  if (known.renamed && known.files.doubt.empty()) return true;
  const bool old = known.files.newest + 2 * quiet < options_.wall_time();
  return (first_look && old) || known.since + quiet <= options_.clock->Now();
}

}  // namespace tensord::models
