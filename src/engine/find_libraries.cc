// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "engine/find_libraries.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/text.h"

namespace tensord::engine {
namespace {

namespace fs = std::filesystem;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool Exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string MissingLibrary(const LibraryPackage& package, const fs::path& directory) {
  for (const char* library : package.libraries) {
    if (!Exists(directory / library)) return library;
  }
  return "";
}

// `directory`, or the package below it when that is where the libraries are.
RuntimeCandidate Look(const LibraryPackage& package, const fs::path& directory, std::string why) {
  fs::path place = directory;
  std::string missing = MissingLibrary(package, place);
  if (!missing.empty() && MissingLibrary(package, directory / package.package).empty()) {
    place = directory / package.package;
    missing.clear();
  }
  return {.directory = place.string(), .why = std::move(why), .missing = std::move(missing)};
}

// root/lib*/python3*/{site,dist}-packages, newest Python first.
std::vector<fs::path> SitePackages(const fs::path& root) {
  std::vector<fs::path> found;
  for (const char* lib : {"lib", "lib64"}) {
    std::error_code error;
    for (fs::directory_iterator at(root / lib, error), end; !error && at != end;
         at.increment(error)) {
      if (!at->path().filename().string().starts_with("python3")) continue;
      for (const char* packages : {"site-packages", "dist-packages"}) {
        if (Exists(at->path() / packages)) found.push_back(at->path() / packages);
      }
    }
  }
  // "python3.9" is older than "python3.11": longer names first, then by text.
  std::sort(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) {
    const std::string x = a.parent_path().filename();
    const std::string y = b.parent_path().filename();
    return std::pair(x.size(), x) > std::pair(y.size(), y);
  });
  return found;
}

}  // namespace

RuntimePlaces PlacesOf(const LibraryPackage& package, std::string explicit_directory) {
  RuntimePlaces places;
  places.explicit_directory = std::move(explicit_directory);
  places.environment_directory = Environment(package.variable);
  places.virtual_env = Environment("VIRTUAL_ENV");
  std::error_code ignored;
  places.binary_directory = fs::read_symlink("/proc/self/exe", ignored).parent_path().string();
  return places;
}

std::vector<RuntimeCandidate> LookFor(const LibraryPackage& package, const RuntimePlaces& places) {
  // Whoever names a directory wants that one: falling back to another would hide the mistake.
  if (!places.explicit_directory.empty()) {
    return {Look(package, places.explicit_directory, base::Cat("--", package.option))};
  }
  if (!places.environment_directory.empty()) {
    return {Look(package, places.environment_directory, base::Cat("$", package.variable))};
  }
  std::vector<std::pair<fs::path, std::string>> list;
  if (!places.binary_directory.empty()) {
    list.emplace_back(places.binary_directory, "beside the program");
  }
  std::vector<std::string> roots = places.system_roots;
  // In a source tree, build/release/bin has the environment that ./run made beside build/.
  const fs::path own = fs::path(places.binary_directory).parent_path().parent_path().parent_path();
  if (!places.binary_directory.empty() && Exists(own / ".venv")) {
    roots.insert(roots.begin(), (own / ".venv").string());
  }
  if (!places.virtual_env.empty()) roots.insert(roots.begin(), places.virtual_env);
  for (const std::string& root : roots) {
    for (const fs::path& packages : SitePackages(root)) {
      list.emplace_back(packages, base::Cat("a Python of ", root));
    }
  }
  std::vector<RuntimeCandidate> candidates;
  for (auto& [directory, why] : list) {
    candidates.push_back(Look(package, directory, std::move(why)));
    if (candidates.back().missing.empty()) break;
  }
  return candidates;
}

absl::StatusOr<std::string> Find(const LibraryPackage& package, const RuntimePlaces& places) {
  const std::vector<RuntimeCandidate> candidates = LookFor(package, places);
  if (!candidates.empty() && candidates.back().missing.empty()) return candidates.back().directory;
  std::string text =
      base::Cat(package.advice, ", and activate its environment or name its directory with --",
                package.option, " or $", package.variable, ". Looked at:");
  for (const RuntimeCandidate& candidate : candidates) {
    text +=
        base::Cat("\n  ", candidate.directory, " (", candidate.why, "): no ", candidate.missing);
  }
  return absl::NotFoundError(text);
}

}  // namespace tensord::engine
