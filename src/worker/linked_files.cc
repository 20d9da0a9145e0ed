// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "worker/linked_files.h"

#include <dirent.h>
#include <sys/stat.h>

#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/text.h"

namespace tensord::worker {
namespace {

constexpr size_t kLinksMax = 1024;  // A rule of the kernel each; shards of variables are some tens.
constexpr std::string_view kFiles[] = {"saved_model.pb", "saved_model.pbtxt", "fingerprint.pb",
                                       "saved_model_config.pb", "model.tflite"};
constexpr std::string_view kFolders[] = {"variables", "assets", "assets.extra"};

class Finder {
 public:
  explicit Finder(const std::string& directory) : directory_(directory) {}

  LinkedFiles Find() && {
    for (const std::string_view name : kFiles) Look(name, S_IFREG);
    for (const std::string_view name : kFolders) {
      Look(name, S_IFDIR);
      LookInto(name);
    }
    return std::move(found_);
  }

 private:
  void LookInto(std::string_view folder) {
    const std::string path = base::Cat(directory_, "/", folder);
    const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(path.c_str()), closedir);
    if (listing == nullptr) return;
    while (const dirent* const entry = readdir(listing.get())) {
      if (found_.places.size() >= kLinksMax) return;
      if (std::string_view(entry->d_name).starts_with('.')) continue;
      Look(base::Cat(folder, "/", entry->d_name), S_IFREG);
    }
  }

  void Look(std::string_view name, mode_t kind) {
    const std::string path = base::Cat(directory_, "/", name);
    struct stat link {};
    struct stat target {};
    if (lstat(path.c_str(), &link) != 0 || !S_ISLNK(link.st_mode)) return;
    const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), std::free);
    if (real == nullptr || stat(real.get(), &target) != 0)
      return;  // The loader says what is missing.
    if ((target.st_mode & S_IFMT) != kind) {
      found_.refused.push_back(base::Cat(name, " -> ", real.get(), ": not a regular file"));
    } else if (target.st_uid != link.st_uid && (target.st_mode & S_IROTH) == 0) {
      found_.refused.push_back(base::Cat(name, " -> ", real.get(),
                                         ": belongs to another user, who lets nobody read it"));
    } else {
      found_.places.emplace_back(real.get());
    }
  }

  const std::string& directory_;
  LinkedFiles found_;
};

}  // namespace

LinkedFiles FindLinkedFiles(const std::string& directory) { return Finder(directory).Find(); }

}  // namespace tensord::worker
