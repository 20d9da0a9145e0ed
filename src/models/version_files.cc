// SPDX-FileCopyrightText: The tensord authors
// SPDX-License-Identifier: Apache-2.0

#include "models/version_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/limits.h"
#include "base/protobuf_wire.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "engine/model_info.h"
#include "models/variables_index.h"

namespace tensord::models {
namespace {

struct File {
  bool regular = false;
  uint64_t bytes = 0;
};

absl::Time TimeOf(const timespec& time) { return absl::TimeFromTimespec(time); }

// All files below a directory, with paths relative to it.
class Walk {
 public:
  void Directory(int at, const std::string& path, int depth) {
    if (depth > limits::kDirectoryDepthMax) return;
    const int dup = fcntl(at, F_DUPFD_CLOEXEC, 0);
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(dup < 0 ? nullptr : fdopendir(dup),
                                                        closedir);
    if (directory == nullptr) {
      if (dup >= 0) close(dup);
      return;
    }
    std::vector<std::string> names;
    while (const dirent* entry = readdir(directory.get())) {
      const std::string_view name(entry->d_name);
      if (name != "." && name != ".." && names.size() < limits::kFilesExaminedMax) {
        names.emplace_back(name);
      }
    }
    // readdir's order may change while nothing else does.
    std::ranges::sort(names);
    for (const std::string& name : names) Entry(at, name, path, depth);
  }

  const std::map<std::string, File>& files() const { return files_; }
  uint64_t bytes() const { return bytes_; }
  absl::Time newest() const { return newest_; }
  uint64_t fingerprint() const { return fingerprint_ == 0 ? 1 : fingerprint_; }

  void Mix(uint64_t value) {
    fingerprint_ ^= value + 0x9e3779b97f4a7c15ull + (fingerprint_ << 6) + (fingerprint_ >> 2);
    fingerprint_ *= 0xff51afd7ed558ccdull;
  }
  void MixFile(const struct stat& found) {
    Mix(static_cast<uint64_t>(found.st_size));
    Mix(static_cast<uint64_t>(found.st_mtim.tv_sec));
    Mix(static_cast<uint64_t>(found.st_mtim.tv_nsec));
    Mix(found.st_ino);
    Mix(found.st_mode);
    Mix(found.st_uid);
  }
  void Newer(absl::Time time) { newest_ = std::max(newest_, time); }

 private:
  void Entry(int at, const std::string& name, const std::string& path, int depth) {
    if (files_.size() >= limits::kFilesExaminedMax) return;
    const std::string full = path + name;
    struct stat found {};
    Mix(std::hash<std::string>()(full));
    if (fstatat(at, name.c_str(), &found, 0) != 0) return Mix(static_cast<uint64_t>(errno));
    if (S_ISDIR(found.st_mode)) {
      Newer(TimeOf(found.st_mtim));
      const base::UniqueFd below(
          openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK));
      files_[full + "/"] = {};
      if (below.valid()) Directory(below.get(), full + "/", depth + 1);
      return;
    }
    MixFile(found);
    const bool regular = S_ISREG(found.st_mode);
    files_[full] = {.regular = regular, .bytes = static_cast<uint64_t>(found.st_size)};
    if (!regular) return;
    bytes_ += static_cast<uint64_t>(found.st_size);
    // The change time too: copying with the original's times sets back only the modification time.
    Newer(TimeOf(found.st_mtim));
    Newer(TimeOf(found.st_ctim));
  }

  std::map<std::string, File> files_;
  uint64_t bytes_ = 0;
  uint64_t fingerprint_ = 0;
  absl::Time newest_ = absl::UnixEpoch();
};

// Opens a regular file; never hangs on a FIFO that takes its place after it was looked at.
base::UniqueFd OpenFile(int at, const std::string& path) {
  return base::UniqueFd(openat(at, path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

absl::StatusOr<std::string> ReadAll(int at, const std::string& path, uint64_t bytes) {
  const base::UniqueFd file = OpenFile(at, path);
  if (!file.valid()) return absl::ErrnoToStatus(errno, path);
  std::string text(bytes, '\0');
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        pread(file.get(), text.data() + done, bytes - done, static_cast<off_t>(done));
    if (got <= 0) return absl::DataLossError(base::Cat(path, " got shorter"));
    done += static_cast<size_t>(got);
  }
  return text;
}

// Whether the last field of a serialized message reaches beyond the end of the file. Reads only the
// few bytes in front of each field.
bool CutShort(int file, uint64_t bytes) {
  constexpr int kFieldsMax = 64;  // A version number and one graph for each tag set.
  uint64_t at = 0;
  for (int field = 0; field < kFieldsMax && at < bytes; ++field) {
    std::array<char, 24> head;
    const ssize_t got = pread(file, head.data(), head.size(), static_cast<off_t>(at));
    if (got <= 0) return true;
    std::string_view rest(head.data(), static_cast<size_t>(got));
    uint64_t tag = 0;
    uint64_t value = 0;
    if (!base::ReadVarint(&rest, &tag)) return false;
    const auto type = static_cast<base::WireType>(tag & 7);
    // What is no SavedModel at all is left to the worker, which can say so.
    if (type != base::WireType::kVarint && type != base::WireType::kBytes) return false;
    if (!base::ReadVarint(&rest, &value)) return true;
    at += static_cast<uint64_t>(got) - rest.size();
    if (type != base::WireType::kBytes) continue;
    if (value > bytes - at) return true;
    at += value;
  }
  return false;
}

// Whether the graph has variables, by the names of the ops that make them.
bool MentionsVariables(int file, uint64_t bytes) {
  constexpr std::array<std::string_view, 2> kOps = {"VarHandleOp", "VariableV2"};
  constexpr uint64_t kScannedMax = 256 << 20;  // Larger graphs are frozen: weights as constants.
  constexpr size_t kOverlap = 16;
  std::string chunk(1 << 20, '\0');
  for (uint64_t at = 0; at < std::min(bytes, kScannedMax);) {
    const ssize_t got = pread(file, chunk.data(), chunk.size(), static_cast<off_t>(at));
    if (got <= 0) return false;
    const std::string_view seen(chunk.data(), static_cast<size_t>(got));
    for (const std::string_view op : kOps) {
      if (seen.find(op) != std::string_view::npos) return true;
    }
    if (static_cast<size_t>(got) <= kOverlap) return false;
    at += static_cast<size_t>(got) - kOverlap;
  }
  return false;
}

class Judge {
 public:
  Judge(int at, const std::map<std::string, File>& files, FilesSeen* seen)
      : at_(at), files_(files), seen_(seen) {}

  void All(bool prefer_tflite) {
    const File* warm_up = Named("assets.extra/tf_serving_warmup_requests");
    if (warm_up != nullptr && warm_up->regular) seen_->warm_up_bytes = warm_up->bytes;
    BatchingParameters();
    const File* lite = prefer_tflite ? Named("model.tflite") : nullptr;
    if (lite != nullptr) return TfLite(*lite);
    const File* text = Named("saved_model.pbtxt");
    const File* binary = Named("saved_model.pb");
    if (binary == nullptr && text == nullptr) {
      // The format before SavedModel: the worker says that it is too old.
      if (Named("export.meta") == nullptr) seen_->missing = "there is no saved_model.pb";
      return;
    }
    if (!(binary != nullptr ? binary : text)->regular) {
      seen_->missing = "saved_model.pb is not a regular file";
      return;
    }
    const bool variables = Variables();
    if (!seen_->missing.empty() || binary == nullptr) return;
    const base::UniqueFd file = OpenFile(at_, "saved_model.pb");
    if (!file.valid()) return;
    if (binary->bytes == 0 || CutShort(file.get(), binary->bytes)) {
      seen_->doubt = base::Cat("saved_model.pb ends in the middle (", binary->bytes, " bytes)");
    } else if (!variables && MentionsVariables(file.get(), binary->bytes)) {
      seen_->doubt = "the graph has variables, but there is no variables/variables.index";
    }
  }

  // A FlatBuffer tells nowhere how long it is: that it is whole shows when nothing comes any more.
  void TfLite(const File& file) {
    constexpr uint64_t kLeast = 8;  // Where its identifier ends.
    seen_->tflite = true;
    if (!file.regular) {
      seen_->missing = "model.tflite is not a regular file";
    } else if (file.bytes < kLeast) {
      seen_->doubt = base::Cat("model.tflite has only ", file.bytes, " bytes");
    }
  }

 private:
  const File* Named(const std::string& name) const {
    const auto at = files_.find(name);
    return at == files_.end() ? nullptr : &at->second;
  }

  void BatchingParameters() {
    const std::string name(engine::kBatchingParametersFile);
    const File* file = Named(name);
    if (file == nullptr || !file->regular || file->bytes > limits::kSideFileBytesMax) return;
    absl::StatusOr<std::string> text = ReadAll(at_, name, file->bytes);
    if (text.ok()) seen_->batching_parameters = *std::move(text);
  }

  // False when there are none.
  bool Variables() {
    const File* index = Named("variables/variables.index");
    if (index == nullptr) {
      const auto below = files_.lower_bound("variables/v");
      if (below == files_.end() || !below->first.starts_with("variables/variables.")) return false;
      seen_->missing = "there is no variables/variables.index";
      return true;
    }
    if (!index->regular) {
      seen_->missing = "variables/variables.index is not a regular file";
      return true;
    }
    if (index->bytes > limits::kVariablesIndexBytesMax) return true;
    const auto bytes = ReadAll(at_, "variables/variables.index", index->bytes);
    if (!bytes.ok()) return true;
    const auto shards = ShardBytes(*bytes);
    if (shards.ok()) {
      Shards(*shards);
    } else if (absl::IsDataLoss(shards.status())) {
      seen_->missing =
          base::Cat("variables/variables.index (", index->bytes, " bytes) has no proper end yet");
    }
    return true;
  }

  void Shards(const std::vector<uint64_t>& shards) {
    for (size_t i = 0; i < shards.size(); ++i) {
      char name[64];
      std::snprintf(name, sizeof(name), "variables/variables.data-%05zu-of-%05zu", i,
                    shards.size());
      const File* shard = Named(name);
      if (shard == nullptr) {
        seen_->missing = base::Cat("there is no ", name);
      } else if (!shard->regular) {
        seen_->missing = base::Cat(name, " is not a regular file");
      } else if (shard->bytes < shards[i]) {
        seen_->missing = base::Cat(name, " has ", shard->bytes, " of the ", shards[i],
                                   " bytes that its index names");
      } else {
        continue;
      }
      return;
    }
  }

  const int at_;
  const std::map<std::string, File>& files_;
  FilesSeen* const seen_;
};

}  // namespace

FilesSeen LookAt(int base, const std::string& name, bool prefer_tflite) {
  FilesSeen seen;
  Walk walk;
  struct stat found {};
  if (fstatat(base, name.c_str(), &found, 0) == 0) {
    walk.Mix(found.st_ino);
    walk.Mix(found.st_mode);
    walk.Newer(TimeOf(found.st_mtim));
  }
  const base::UniqueFd directory(
      openat(base, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK));
  if (directory.valid()) {
    walk.Directory(directory.get(), "", 0);
    Judge(directory.get(), walk.files(), &seen).All(prefer_tflite);
  } else if (errno == ENOENT) {
    seen.missing = "it went away while it was looked at";
  }
  seen.bytes = walk.bytes();
  seen.fingerprint = walk.fingerprint();
  seen.newest = walk.newest();
  return seen;
}

}  // namespace tensord::models
