// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

// Where the libraries of a Python package lie, without a Python.
namespace tensord::engine {

struct LibraryPackage {
  std::vector<const char*> libraries;  // All of them are needed.
  const char* package;                 // The folder in site-packages that holds them.
  const char* option;                  // Of the command line, that names their directory.
  const char* variable;                // Of the environment, likewise.
  const char* advice;                  // When they are nowhere: what to install.
};

struct RuntimePlaces {
  std::string explicit_directory;     // By the package's option; when set, nothing else counts.
  std::string environment_directory;  // By its variable; likewise.
  std::string binary_directory;       // Where the running program lies.
  std::string virtual_env;            // $VIRTUAL_ENV
  std::vector<std::string> system_roots = {"/usr/local", "/usr"};  // With lib/python3*/ below.
};

// A directory that was looked at, and what was found there.
struct RuntimeCandidate {
  std::string directory;
  std::string why;      // "--tensorflow_library_dir", "beside the program", "site-packages of ...".
  std::string missing;  // The library that is not there; empty when all are.
};

// The places of this process: its environment and /proc/self/exe.
RuntimePlaces PlacesOf(const LibraryPackage& package, std::string explicit_directory);

// Every place that was looked at, in order, the first complete one last. A directory may be the one
// with the libraries or its parent (site-packages). No Python is started.
std::vector<RuntimeCandidate> LookFor(const LibraryPackage& package, const RuntimePlaces& places);

// The directory with all libraries. NOT_FOUND, with every place that was looked at.
absl::StatusOr<std::string> Find(const LibraryPackage& package, const RuntimePlaces& places);

}  // namespace tensord::engine
