// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>
#include <vector>

namespace tensord::worker {

// Where the links among a SavedModel's files lead: stores that keep each file once (DVC, content
// caches, build systems) publish versions of links.
struct LinkedFiles {
  std::vector<std::string> places;  // Real paths of files, and of variables/ or assets/ as a whole.
  std::vector<std::string> refused;  // "saved_model.pb -> /x: belongs to another user", for people.
};

// Only names that SavedModels have are looked at. A link is followed when its target belongs to
// whoever made the link, or everybody may read it: somebody who may write into a model's directory
// must not make the worker read what he may not.
LinkedFiles FindLinkedFiles(const std::string& directory);

}  // namespace tensord::worker
